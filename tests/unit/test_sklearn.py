"""Estimators of scikit-learn through glowc.from_sklearn: labels of the C are onnxruntime's, floats within 1e-5."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import glowc
from glowc.errors import InputError, MissingToolError, ModelError
from tests.conftest import ROOT, require_module, require_tool

datasets = require_module("sklearn.datasets")
require_module("skl2onnx")

from sklearn import (  # noqa: E402
    cluster,
    decomposition,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
    tree,
)
from sklearn.pipeline import make_pipeline  # noqa: E402

FLOWERS, KIND = datasets.load_iris(return_X_y=True)
CELLS, MALIGNANT = datasets.load_breast_cancer(return_X_y=True)
PATIENTS, PROGRESS = datasets.load_diabetes(return_X_y=True)
SCALED = preprocessing.StandardScaler().fit_transform(FLOWERS)
PAIR = [("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier(random_state=0))]
SEED = {"random_state": 0}
CLASSIFIERS: dict[str, Any] = {
    "RandomForest": ensemble.RandomForestClassifier(15, max_depth=8, **SEED),
    "ExtraTrees": ensemble.ExtraTreesClassifier(15, **SEED),
    "GradientBoosting": ensemble.GradientBoostingClassifier(n_estimators=8, **SEED),
    "HistGradientBoosting": ensemble.HistGradientBoostingClassifier(max_iter=8, **SEED),
    "DecisionTree": tree.DecisionTreeClassifier(**SEED),
    "LogisticRegression": linear_model.LogisticRegression(),
    "SVC": svm.SVC(),
    "SVC poly": svm.SVC(kernel="poly", degree=2, coef0=1.0),
    "SVC sigmoid": svm.SVC(kernel="sigmoid", gamma=0.01),
    "LinearSVC": svm.LinearSVC(**SEED),
    "KNeighbors": neighbors.KNeighborsClassifier(),
    "GaussianNB": naive_bayes.GaussianNB(),
    "BernoulliNB": naive_bayes.BernoulliNB(),
    "MLP": neural_network.MLPClassifier(hidden_layer_sizes=(12,), max_iter=30, **SEED),
    "AdaBoost": ensemble.AdaBoostClassifier(n_estimators=6, **SEED),
    "Bagging": ensemble.BaggingClassifier(n_estimators=4, **SEED),
    "soft voting": ensemble.VotingClassifier(PAIR, voting="soft", flatten_transform=False),
    "hard voting": ensemble.VotingClassifier(PAIR, flatten_transform=False),
    "LDA": discriminant_analysis.LinearDiscriminantAnalysis(),
    "QDA": discriminant_analysis.QuadraticDiscriminantAnalysis(),
    "PCA": make_pipeline(decomposition.PCA(2), linear_model.LogisticRegression()),
    "MinMaxScaler": make_pipeline(preprocessing.MinMaxScaler(), tree.DecisionTreeClassifier(**SEED)),
    "Normalizer": make_pipeline(preprocessing.Normalizer(), naive_bayes.GaussianNB()),
}
REGRESSORS: dict[str, Any] = {
    "RandomForest": ensemble.RandomForestRegressor(8, max_depth=6, **SEED),
    "ExtraTrees": ensemble.ExtraTreesRegressor(8, max_depth=6, **SEED),
    "GradientBoosting": ensemble.GradientBoostingRegressor(n_estimators=8, **SEED),
    "HistGradientBoosting": ensemble.HistGradientBoostingRegressor(max_iter=8, **SEED),
    "DecisionTree": tree.DecisionTreeRegressor(max_depth=8, **SEED),
    "Ridge": linear_model.Ridge(),
    "SVR": svm.SVR(),
    "KNeighbors": neighbors.KNeighborsRegressor(),
    "MLP": neural_network.MLPRegressor(hidden_layer_sizes=(12,), max_iter=30, **SEED),
    "AdaBoost": ensemble.AdaBoostRegressor(n_estimators=6, **SEED),
    "Bagging": ensemble.BaggingRegressor(n_estimators=4, **SEED),
    "RobustScaler": make_pipeline(preprocessing.RobustScaler(), linear_model.Lasso(alpha=0.01)),
    "PolynomialFeatures": make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()),
}
OTHERS: dict[str, Any] = {
    "IsolationForest": ensemble.IsolationForest(n_estimators=8, **SEED),
    "KMeans": cluster.KMeans(3, n_init=1, **SEED),
    "StandardScaler": preprocessing.StandardScaler(),
    "PCA": decomposition.PCA(2),
    "GaussianProcess": gaussian_process.GaussianProcessRegressor(
        gaussian_process.kernels.RBF() + gaussian_process.kernels.WhiteKernel(1.0), alpha=1e-2, optimizer=None
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    require_tool("gcc")


def agree(model: onnx.ModelProto, rows: np.ndarray, atol: float = 1e-5) -> None:
    """Compare the C with onnxruntime on each row."""
    ort = require_module("onnxruntime")
    quiet = ort.SessionOptions()
    quiet.log_severity_level = 4
    theirs, ours = ort.InferenceSession(model.SerializeToString(), quiet), glowc.InferenceSession(model)
    for row in rows:
        for want, got in zip(*(s.run(None, {"X": row[None]}) for s in (theirs, ours)), strict=True):
            assert want.shape == got.shape
            if want.dtype == np.float32:
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol)
            else:
                assert np.array_equal(got, want)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    model = glowc.from_sklearn(CLASSIFIERS[name].fit(SCALED, KIND))
    agree(model, SCALED[::6].astype(np.float32))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["RandomForest", "GradientBoosting", "LogisticRegression", "SVC", "LinearSVC", "MLP"])
def test_two_classes(name: str) -> None:
    x = preprocessing.StandardScaler().fit_transform(CELLS)
    agree(glowc.from_sklearn(CLASSIFIERS[name].fit(x, MALIGNANT)), x[::30].astype(np.float32))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    model = glowc.from_sklearn(REGRESSORS[name].fit(PATIENTS, PROGRESS / 100))
    agree(model, PATIENTS[::20].astype(np.float32))


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    estimator = OTHERS[name].fit(SCALED, SCALED[:, 0]) if name == "GaussianProcess" else OTHERS[name].fit(SCALED)
    agree(
        glowc.from_sklearn(estimator), SCALED[::6].astype(np.float32), atol=1e-4 if name == "GaussianProcess" else 1e-5
    )


@pytest.mark.parametrize("kind", ["RandomForest", "GaussianNB", "LogisticRegression"])
def test_a_label_that_is_a_text_is_the_number_of_its_class(kind: str, tmp_path: Path) -> None:
    names = np.array(["setosa", "versicolor", "virginica"])
    forest = CLASSIFIERS[kind].fit(FLOWERS, names[KIND])
    model = glowc.from_sklearn(forest)
    session = glowc.InferenceSession(model)
    header = (glowc.compile(model, tmp_path / "bundle").folder / "model.h").read_text(encoding="utf-8")
    assert '#define MODEL_OUTPUT_OUTPUT_LABEL_NAMES {"setosa", "versicolor", "virginica"}' in header
    for row in FLOWERS[::15].astype(np.float32):
        (label,) = session.run(None, {"X": row[None]})[0]
        assert forest.classes_[label] == forest.predict(row[None])[0]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("scaled", [False, True])
def test_whole_numbers_are_compared_as_such(kind: str, scaled: bool, tmp_path: Path) -> None:
    x, y = datasets.load_digits(return_X_y=True)
    steps = [preprocessing.StandardScaler()] if scaled else []
    forest = make_pipeline(*steps, ensemble.RandomForestClassifier(6, max_depth=6, **SEED)).fit(x, y)
    model = glowc.from_sklearn(forest, features=kind)
    agree(model, x[::90].astype(kind), atol=0)
    code = glowc.compile(model, tmp_path / "bundle", board="mps2-an386").folder / "model.c"
    shown = code.read_text(encoding="utf-8")
    assert f"const {kind}_t *restrict threshold" in shown
    assert "model_cast" not in shown
    assert "model_binary" not in shown


def test_codes_over_the_range_of_each_feature() -> None:
    forest = ensemble.RandomForestClassifier(6, max_depth=6, **SEED).fit(CELLS, MALIGNANT)
    model = glowc.from_sklearn(forest, features="int8", data=CELLS)
    agree(model, np.random.default_rng(0).integers(-128, 128, (20, 30)).astype(np.int8), atol=0)
    facts = {p.key: np.array(eval(p.value)) for p in model.metadata_props}
    codes = np.clip(np.rint(CELLS / facts["scale"] + facts["zero_point"]), -128, 127)
    near = forest.predict((codes - facts["zero_point"]) * facts["scale"])
    session = glowc.InferenceSession(model)
    found = [session.run(None, {"X": row[None].astype(np.int8)})[0][0] for row in codes[::20]]
    assert np.mean(np.array(found) == near[::20]) > 0.95


def test_what_is_no_fitted_estimator_is_refused() -> None:
    forest = ensemble.RandomForestClassifier(2, **SEED)
    with pytest.raises(InputError, match="no fitted estimator"):
        glowc.from_sklearn(forest)
    forest.fit(FLOWERS, KIND)
    with pytest.raises(InputError, match="features 'int7'"):
        glowc.from_sklearn(forest, features="int7")
    with pytest.raises(InputError, match=r"data of shape \[150, 3\]"):
        glowc.from_sklearn(forest, features="int8", data=FLOWERS[:, :3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = glowc.from_sklearn(svm.SVC(probability=True).fit(FLOWERS, KIND))
    with pytest.raises(ModelError, match="probabilities, which take an iteration"):
        glowc.InferenceSession(model)
    with pytest.raises(ModelError, match="skl2onnx cannot convert"):
        glowc.from_sklearn(neighbors.NearestCentroid().fit(FLOWERS, KIND))


def test_without_skl2onnx_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingToolError, match="skl2onnx is not installed") as error:
        glowc.from_sklearn(preprocessing.StandardScaler().fit(FLOWERS))
    assert error.value.hint is not None
    assert "glowc[sklearn]" in error.value.hint


def test_the_page_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("arm-none-eabi-gcc")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/START_SKLEARN.md").read_text(encoding="utf-8")
    code = "".join(block.split("```")[0] for block in page.split("```python\n")[1:])
    known: dict[str, Any] = {}
    exec(code, known)
    assert known["label"].tolist() == [0]
    assert (tmp_path / "forest.onnx").stat().st_size > 0
    assert (tmp_path / "build/forest/model.c").is_file()
