"""Labels and metrics: every kind of file, what is said of labels that do not fit, and numbers that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glowc.errors import InputError
from glowc.quant.labels import Labels, folder_labels, read_classes, read_labels
from glowc.quant.metrics import auc, check_classes, confusion, cosine, load_metric, predicted, sqnr_db, top


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_arrays_of_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[2], [0], [1]], np.int32))
    np.savez(tmp_path / "b.npz", image=np.zeros((3, 4)), label=np.array([2.0, 0.0, 1.0]))
    np.savez(tmp_path / "c.npz", anything=np.array([2, 0, 1]))
    for name in ("a.npy", "b.npz", "c.npz"):
        found = read_labels(tmp_path / name, 3)
        assert found.classes
        assert found.values.tolist() == [2, 0, 1]


def test_text_and_csv(tmp_path: Path) -> None:
    lines = read_labels(written(tmp_path / "l.txt", "cat\ndog\n\ncat\n"), 3)
    assert (lines.values.tolist(), lines.names) == ([0, 1, 0], ("cat", "dog"))
    ordered = read_labels(tmp_path / "l.txt", 3, ("dog", "cat"))
    assert ordered.values.tolist() == [1, 0, 1]
    assert ordered.shown(1) == "cat"
    table = written(tmp_path / "l.csv", "file,label\na.png,3\nb.png,1\n")
    assert read_labels(table, 2).values.tolist() == [3, 1]
    assert read_labels(written(tmp_path / "n.csv", "1\n0\n"), 2).values.tolist() == [1, 0]
    real = read_labels(written(tmp_path / "r.txt", "0.5\n1.25\n"), 2)
    assert not real.classes
    assert real.values.tolist() == [0.5, 1.25]


def test_names_of_folders_are_labels(tmp_path: Path) -> None:
    pairs = [(tmp_path, tmp_path / "yes" / "a" / "1.png"), (tmp_path, tmp_path / "no" / "2.png")]
    found = folder_labels(pairs, ())
    assert found is not None
    assert (found.values.tolist(), found.names) == ([1, 0], ("no", "yes"))
    assert folder_labels([(tmp_path, tmp_path / "1.png")], ()) is None
    numbers = folder_labels([(tmp_path, tmp_path / "10" / "1.png"), (tmp_path, tmp_path / "9" / "1.png")], ())
    assert numbers is not None
    assert numbers.values.tolist() == [10, 9]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("l.txt", "1\n2\n", "has 2 labels, the data has 3 samples"),
        ("l.txt", "a\nb\nc\n", "label 'c' is not one of the 2 classes"),
        ("l.csv", "file,kind\nx,1\n", "has 2 columns, none is named 'label'"),
        ("l.csv", "file,label\nx,1\ny\n", "row 2 has no label"),
        ("l.npy", "no array", "numpy cannot read"),
    ],
)
def test_labels_that_do_not_fit(tmp_path: Path, name: str, content: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_labels(written(tmp_path / name, content), 3, ("a", "b"))


def test_files_that_are_no_labels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_labels(tmp_path / "none.npy", 3)
    with pytest.raises(InputError, match="does not exist"):
        read_classes(tmp_path / "none.txt")
    np.savez(tmp_path / "two.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(InputError, match="has no array of labels: 'a', 'b'"):
        read_labels(tmp_path / "two.npz", 3)
    np.save(tmp_path / "words.npy", np.array(["a", "b"]))
    with pytest.raises(InputError, match="no labels"):
        read_labels(tmp_path / "words.npy", 2)


def test_shares_of_right_classes() -> None:
    outputs = np.array([[[0.1, 0.7, 0.2]], [[0.5, 0.3, 0.2]], [[0.2, 0.3, 0.5]]])
    labels = np.array([1, 1, 0])
    assert top(outputs, labels) == pytest.approx(1 / 3)
    assert top(outputs, labels, 2) == pytest.approx(2 / 3)
    assert confusion(outputs, labels).tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert predicted(np.array([[[0.4]], [[0.6]]])).tolist() == [0, 1]
    assert predicted(np.array([[-3.0], [2.0]])).tolist() == [0, 1]


def test_auc_counts_pairs_in_order_and_ties_half() -> None:
    scores, labels = np.array([[0.1], [0.4], [0.4], [0.8]]), np.array([0, 0, 1, 1])
    assert auc(scores, labels) == pytest.approx(3.5 / 4)
    assert auc(np.concatenate([1 - scores, scores], axis=1), labels) == pytest.approx(3.5 / 4)
    assert auc(scores, np.zeros(4, np.int64)) is None
    assert auc(np.zeros((4, 3)), labels) is None


def test_errors_of_values() -> None:
    want = np.array([1.0, -1.0, 1.0, -1.0])
    assert sqnr_db(want * 1.1, want) == pytest.approx(20, abs=1e-6)
    assert sqnr_db(want, want) == 200
    assert cosine(-want, want) == pytest.approx(-1)
    assert (cosine(want * 0, want), cosine(want * 0, want * 0)) == (0, 1)


def test_class_without_output() -> None:
    with pytest.raises(InputError, match="sample 1 has label 3, the model knows classes 0 to 2"):
        check_classes(Labels(np.array([0, 3])), np.zeros((2, 3)))


def test_own_metric(tmp_path: Path) -> None:
    file = written(tmp_path / "m.py", "def mean(outputs, labels):\n    return (outputs[:, 0] - labels).mean()\n")
    assert load_metric(f"{file}:mean")(np.array([[3.0], [5.0]]), np.array([1, 1])) == 3


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        ("x = 1", "f", "has no function 'f'"),
        ("def f(:", "f", "SyntaxError"),
        ("def f(outputs, labels): raise ValueError('no')", "f", "ValueError: no"),
        ("def f(outputs, labels): return 'good'", "f", "fails: ValueError"),
        ("def f(outputs, labels): return float('nan')", "f", "returns nan"),
    ],
)
def test_own_metric_that_fails(tmp_path: Path, code: str, name: str, text: str) -> None:
    file = written(tmp_path / "m.py", code)
    with pytest.raises(InputError, match=text):
        load_metric(f"{file}:{name}")(np.zeros((1, 1)), np.zeros(1))


def test_metric_without_file() -> None:
    with pytest.raises(InputError, match="no such file"):
        load_metric("nowhere.py:f")
