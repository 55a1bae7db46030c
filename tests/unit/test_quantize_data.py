"""Sample data and profiles: every kind of file, and what is said of files that do not fit."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest

from glowc.errors import InputError
from glowc.quant.data import ImageFormat, Sample, count_samples, read_samples
from glowc.quant.engine import Engine
from glowc.quant.load import load_float
from glowc.quant.net import Net, Port
from glowc.quant.profile import (
    BINS,
    check_profile,
    profile_net,
    profile_text,
    read_profile,
    stats_of,
)
from tests.conftest import require_module
from tests.unit.quantize_nets import conv_net, dense_net, images, rows

F32 = np.dtype(np.float32)


def net_of(*ports: Port) -> Net:
    return Net("net", ports, (), (), {}, {"": 17}, 8)


DENSE = net_of(Port("x", (1, 4), F32))
IMAGE = net_of(Port("image", (1, 3, 2, 2), F32))


def read(path: Path, net: Net = DENSE, form: ImageFormat | None = None) -> list[Sample]:
    return list(read_samples([path], net.inputs, form))


@pytest.mark.parametrize("shape", [(5, 1, 4), (5, 4)], ids=["samples-first", "batch-is-samples"])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    array = np.arange(20, dtype=np.float32).reshape(shape)
    path = tmp_path / f"in.{kind}"
    np.save(path, array) if kind == "npy" else np.savez(path, x=array)
    found = read(path)
    assert len(found) == 5
    np.testing.assert_array_equal(found[4]["x"], [[16, 17, 18, 19]])


def test_folder_is_read_in_order(tmp_path: Path) -> None:
    for i in (2, 0, 1):
        np.save(tmp_path / f"{i}.npy", np.full((1, 4), i, np.float32))
    (tmp_path / "notes.txt").write_text("not data")
    assert [s["x"][0, 0] for s in read(tmp_path)] == [0, 1, 2]
    assert count_samples([tmp_path], DENSE.inputs) == 3


def test_csv_with_a_header(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b,c,d\n1,2,3,4\n5,6,7,8\n")
    np.testing.assert_array_equal([s["x"] for s in read(tmp_path / "in.csv")], [[[1, 2, 3, 4]], [[5, 6, 7, 8]]])


def test_raw(tmp_path: Path) -> None:
    (tmp_path / "in.raw").write_bytes(np.arange(8, dtype="<f4").tobytes())
    assert [s["x"][0, 0] for s in read(tmp_path)] == [0, 4]


def test_wav_is_cut_into_pieces(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "in.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.repeat(np.array([0, 16384, -32768, 0, 8192, 0], "<i2"), 2).tobytes())
    np.testing.assert_array_equal([s["x"] for s in read(tmp_path)], [[[0, 0.5, -1, 0]], [[0.25, 0, 0, 0]]])


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_image(tmp_path: Path, layout: str) -> None:
    pillow = require_module("PIL.Image")
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    pillow.fromarray(pixels).save(tmp_path / "a.png")
    form = ImageFormat(mean=(1, 2, 3), std=(2,), channels="bgr")
    net = IMAGE if layout == "nchw" else net_of(Port("image", (1, 2, 2, 3), F32))
    want = (pixels[..., ::-1].astype(np.float32) - [1, 2, 3]) / 2
    want = want.transpose(2, 0, 1) if layout == "nchw" else want
    np.testing.assert_array_equal(read(tmp_path, net, form)[0]["image"][0], want)


def wrong(tmp_path: Path, name: str) -> tuple[Path, Net]:
    """Write a file that is wrong in one way; return it and the network that it is for."""
    path, two = tmp_path / name, net_of(Port("x", (1, 4), F32), Port("z", (1, 2), F32))
    if name == "shape.npy":
        np.save(path, np.zeros((3, 5), np.float32))
    elif name == "none.npy":
        np.save(path, np.zeros((0, 1, 4), np.float32))
    elif name == "words.npy":
        np.save(path, np.array(["a"]))
    elif name in ("other.npz", "counts.npz"):
        np.savez(
            path, x=np.zeros((2, 1, 4), np.float32), **{name[0]: 0, "z" if name[0] == "c" else "y": np.zeros((3, 1, 2))}
        )
        return path, two
    elif name == "two.npy":
        np.save(path, np.zeros((1, 4), np.float32))
        return path, two
    elif name == "empty":
        path.mkdir()
    elif name == "line.csv":
        path.write_text("1,2,3,4\n1,2,x,4\n")
    elif name != "gone.npy":
        path.write_bytes(b"12345")
    return path, DENSE


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("shape.npy", r"shape.npy has shape \[3, 5\].*\n.*x: float32\[1, 4\]"),
        ("none.npy", "holds no sample"),
        ("words.npy", "values of type <U1"),
        ("other.npz", "has no array 'z'"),
        ("counts.npz", "different numbers of samples"),
        ("two.npy", "the model has 2 inputs: 'x', 'z'"),
        ("empty", "holds no data\n  it is empty"),
        ("line.csv", "line 2: not a number"),
        ("size.raw", r"5 bytes\n.*16 bytes a sample"),
        ("bad.npy", "numpy cannot read"),
        ("bad.wav", "no WAV file"),
        ("odd.xyz", "of no known kind"),
        ("gone.npy", "does not exist"),
    ],
)
def test_wrong_file_is_named(tmp_path: Path, name: str, text: str) -> None:
    path, net = wrong(tmp_path, name)
    with pytest.raises(InputError, match=text) as error:
        read(path, net)
    assert name in str(error.value)


def test_histogram_moves_with_a_growing_range() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=1000).astype(np.float32), (3 * rng.normal(size=1000)).astype(np.float32)
    stats = stats_of(first).with_values(second, None)
    both = np.concatenate([first, second])
    assert (stats.low, stats.high) == (both.min(), both.max())
    assert stats.histogram.sum() == 2000
    assert len(stats.histogram) == BINS
    want = np.histogram(both, BINS, (stats.low, stats.high))[0]
    assert np.abs(np.cumsum(stats.histogram) - np.cumsum(want)).max() <= 10  # a bin's width, at most


def test_profile_of_a_file_is_the_profile(tmp_path: Path) -> None:
    engine = Engine()
    net = load_float(conv_net())
    profile = profile_net(net, engine, images(3))
    (tmp_path / "p.yaml").write_text(profile_text(profile))
    again = read_profile(tmp_path / "p.yaml")
    check_profile(again, net, tmp_path / "p.yaml")
    assert again.tensors.keys() == profile.tensors.keys()
    for name, stats in profile.tensors.items():
        assert (again.tensors[name].low, again.tensors[name].high) == (stats.low, stats.high)
        assert np.abs(again.tensors[name].histogram - stats.histogram).max() < 1
    assert profile.tensors["r1"].channels is not None


def test_profile_of_another_graph_is_refused(tmp_path: Path) -> None:
    engine = Engine()
    profile = profile_net(load_float(dense_net()), engine, rows([1, 2, 3, 4]))
    with pytest.raises(InputError, match=r"profile of another graph\n.*the model is sha256.*\n.*hint: profile this"):
        check_profile(profile, load_float(conv_net()), tmp_path / "p.yaml")


@pytest.mark.parametrize("text", ["", "graph_hash: 3\n", 'graph_hash: "a"\nsamples: 1\nglowc_version: "1"\n  "x": {}'])
def test_damaged_profile(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(InputError, match=r"p.yaml is no profile"):
        read_profile(tmp_path / "p.yaml")
