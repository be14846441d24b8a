"""Terms of one's own: the one of docs/contributing.md, and one that only mini-batches can fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.errors import DataError, FormulaError
from ahofm_keras.formula import TERM_CALLS, TermCall, TermSpec
from ahofm_keras.terms import TERMS
from ahofm_keras.terms.learning import Learning
from ahofm_keras.terms.linear import LinearTerm
from tests.docs.pages import DOCS, read_examples

NAMES = list("abcd")


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """What a test registers is forgotten."""
    before = dict(TERMS), dict(TERM_CALLS)
    yield
    for registry, known in zip((TERMS, TERM_CALLS), before, strict=True):
        registry.clear()
        registry.update(known)  # type: ignore[arg-type]


@pytest.fixture
def ridge() -> type[Any]:
    """The term of the page, as the page defines it."""
    page, namespace = DOCS / "contributing.md", {"__name__": __name__}
    code = next(e.code.text for e in read_examples(page) if "class RidgeTerm" in e.code.text)
    exec(code, namespace)
    return namespace["RidgeTerm"]  # type: ignore[return-value]


@pytest.fixture
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(3, 2, size=(120, 5)), columns=[*NAMES, "e"])
    data["y"] = data.a - data.b + np.sin(data.e) + 0.5 * rng.normal(size=120)
    return data


@pytest.mark.usefixtures("ridge")
def test_a_ridge_is_its_closed_form(data: pd.DataFrame) -> None:
    model = ak.AdditiveModel("y ~ ridge(a, b, c, d, sp=0.3)", data)
    model.fit(data, solver="bcd", verbose=0)
    X = data[NAMES].to_numpy()
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    target = data.y - data.y.mean()
    # The penalty is lambda per row, in units of standardised columns.
    A = scaled.T @ scaled + 0.3 * len(data) * np.eye(4)
    slopes = np.linalg.solve(A, scaled.T @ target) / X.std(axis=0)
    np.testing.assert_allclose(ak.coef(model)[1:], slopes, rtol=1e-5)


@pytest.mark.usefixtures("ridge")
def test_adam_finds_the_same_ridge(data: pd.DataFrame) -> None:
    found = {}
    for solver in ("bcd", "adam"):
        model = ak.AdditiveModel("y ~ ridge(a, b, c, d, sp=0.3)", data)
        options = {"epochs": 400, "validation_split": 0.0} if solver == "adam" else {}
        model.fit(data, solver=solver, verbose=0, **options)
        found[solver] = ak.coef(model).to_numpy()
    np.testing.assert_allclose(found["adam"], found["bcd"], atol=5e-3)


@pytest.mark.usefixtures("ridge")
def test_a_registered_term_goes_everywhere(data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.fit("y ~ a:e + ridge(a, b, c, d) + s(e)", data, verbose=0)
    terms = ak.summary(model).terms
    assert terms["kind"].to_dict() == {"a:e": "linear", "ridge(a, b, c, d)": "ridge", "s(e)": "smooth"}
    assert 1.5 < terms.edf["ridge(a, b, c, d)"] <= 4
    assert "ridge(a, b, c, d)" in str(ak.summary(model))
    link = model.predict(data, type="link")
    np.testing.assert_allclose(
        model.predict(data, type="terms").sum(axis=1) + model.intercept, link, atol=1e-5
    )
    assert ak.explain(model, data.iloc[[3]]).link == pytest.approx(link[3], abs=1e-5)
    found = {effect.label for effect in ak.effects(model)}
    assert {"b", "d", "e"} <= found
    # The band of a straight line is that of its coefficient.
    error = np.sqrt(np.diag(ak.vcov(model)))[list(ak.vcov(model).index).index("ridge(a, b, c, d).b")]
    line = ak.effect(model, "b")
    (at,), fit, se = line.grid, line.fit, line.se
    assert np.ptp(fit) / np.ptp(at) == pytest.approx(-ak.coef(model)["ridge(a, b, c, d).b"], rel=1e-4)
    np.testing.assert_allclose(se[[0, -1]], error * np.abs(at[[0, -1]] - data.b.mean()), rtol=0.02)
    ak.check(model)
    ak.report(model, tmp_path / "page.html")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    pd.testing.assert_frame_equal(again.predict(data, interval=0.9), model.predict(data, interval=0.9))
    model.export(tmp_path / "served", verbose=False)


@pytest.mark.usefixtures("ridge")
def test_the_penalty_that_the_data_asks_for_is_chosen(data: pd.DataFrame) -> None:
    noise = data.assign(y=np.random.default_rng(2).normal(size=120))
    for frame, low, high in ((data, 3.5, 4.0), (noise, 0.0, 0.05)):
        model = ak.fit("y ~ ridge(a, b, c, d)", frame, verbose=0)
        assert low <= ak.summary(model).terms.edf["ridge(a, b, c, d)"] <= high


@pytest.mark.usefixtures("ridge")
def test_what_a_call_may_say_is_checked() -> None:
    with pytest.raises(FormulaError, match=r"`sp` of `ridge\(\)` must be a number of at least 0"):
        ak.parse_formula("y ~ ridge(a, sp=-1)")
    with pytest.raises(FormulaError, match=r"Unknown argument `k` of `ridge\(\)`. Known: `sp`"):
        ak.parse_formula("y ~ ridge(a, k=3)")


def test_a_file_of_a_term_that_is_not_known(
    ridge: type[Any], data: pd.DataFrame, tmp_path: Path
) -> None:
    model = ak.AdditiveModel("y ~ ridge(a, b)", data)
    model.save(tmp_path / "model.keras")
    del TERMS["ridge"]
    with pytest.raises(DataError, match=r"kind 'ridge'.*which is not known here: import the module"):
        ak.load_model(tmp_path / "model.keras")


def test_what_cannot_be_registered(ridge: type[Any]) -> None:
    assert ak.register_term(ridge) is ridge  # a cell of a notebook that runs again

    def other(**changes: Any) -> type[Any]:
        return type("Other", (LinearTerm,), {"kind": "other", "word": "other", **changes})

    with pytest.raises(DataError, match=r"kind 'ridge' is registered already: RidgeTerm"):
        ak.register_term(other(kind="ridge"))
    with pytest.raises(DataError, match=r"Formulas have a term `s\(\)` already"):
        ak.register_term(other(calls={"s": TermCall("other", (1, 1))}))
    with pytest.raises(DataError, match="cannot call 'a b'"):
        ak.register_term(other(calls={"a b": TermCall("other", (1, 1))}))
    with pytest.raises(DataError, match=r"`mine\(\)` is of kind 's', the term of 'other'"):
        ak.register_term(other(calls={"mine": TermCall("s", (1, 1))}))
    with pytest.raises(DataError, match="takes a subclass of `Term`"):
        ak.register_term("ridge")  # type: ignore[type-var]
    assert "other" not in TERMS


@dataclass(frozen=True)
class NetTerm(LinearTerm):
    """A small network: its weights are in no block."""

    kind: ClassVar[str] = "net"
    word: ClassVar[str] = "network"
    calls: ClassVar[Mapping[str, TermCall]] = {"net": TermCall("net", (1, 1))}

    @classmethod
    def learn(cls, spec: TermSpec, learning: Learning) -> NetTerm:
        made = super().learn(spec, learning)
        return cls(**{**vars(made), "label": spec.label, "name": learning.name(spec.label)})

    @property
    def line(self) -> None:
        return None

    def linear_block(self, sources: Any) -> None:
        return None

    def connect(self, inputs: Any) -> Any:
        own = inputs.sources.column_slices[self.name]
        inner = keras.layers.Dense(8, "tanh", name=f"{self.name}_inner")
        return keras.layers.Dense(1, name=self.name)(inner(inputs.columns[:, own]))

    def add_groups(self, reader: Any) -> None:
        return super(LinearTerm, self).add_groups(reader)


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_a_term_without_blocks_takes_turns_with_exact_updates(
    data: pd.DataFrame, tmp_path: Path
) -> None:
    keras.utils.set_random_seed(1)
    ak.register_term(NetTerm)
    model = ak.AdditiveModel("y ~ a + b + net(e)", data)
    assert not model.has_posterior
    with pytest.raises(DataError, match=r"`net\(e\)` has no exact updates. Use solver=\"hybrid\""):
        model.fit(data, solver="variational", verbose=0)
    model.fit(data, epochs=150, verbose=0)
    assert model.fit_result.solver == "hybrid"
    assert model.has_posterior
    terms = model.predict(data, type="terms")
    assert np.corrcoef(terms["net(e)"], np.sin(data.e))[0, 1] > 0.8
    with pytest.raises(DataError, match=r"`net\(e\)` cannot be taken apart"):
        ak.effects(model)
    with pytest.raises(DataError, match=r"`net\(e\)` cannot be taken apart"):
        ak.summary(model)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_all_at_once_has_a_posterior_given_the_term(data: pd.DataFrame) -> None:
    keras.utils.set_random_seed(1)
    ak.register_term(NetTerm)
    model = ak.AdditiveModel("y ~ a + b + net(e)", data)
    model.fit(data, solver="adam", epochs=100, verbose=0)
    assert model.fit_result.posterior == "laplace"
    rest = data.y - model.predict(data, type="terms")["net(e)"]
    X = np.column_stack([np.ones(len(data)), data.a, data.b])
    known = np.linalg.inv(X.T @ X) * model.fit_result.dispersion
    found = ak.vcov(model).to_numpy()
    assert rest.std() > 0
    # 15 % of the rows are held out.
    np.testing.assert_allclose(np.sqrt(np.diag(found)), np.sqrt(np.diag(known) / 0.85), rtol=0.2)
