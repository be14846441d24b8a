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
from scipy.optimize import curve_fit

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
def saturation() -> type[Any]:
    """The term of the page, as the page defines it."""
    page, namespace = DOCS / "contributing.md", {"__name__": __name__}
    code = next(e.code.text for e in read_examples(page) if "class SaturationTerm" in e.code.text)
    exec(code, namespace)
    return namespace["SaturationTerm"]  # type: ignore[return-value]


@pytest.fixture
def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(3, 2, size=(120, 5)), columns=[*NAMES, "e"])
    data["dose"] = rng.uniform(0, 20, 120)
    data["y"] = data.a - data.b + np.sin(data.e) + 0.5 * rng.normal(size=120)
    data["relief"] = 5 * data.dose / (3 + data.dose) + data.a + 0.2 * rng.normal(size=120)
    return data


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
@pytest.mark.usefixtures("saturation")
def test_a_law_has_the_parameters_of_least_squares(data: pd.DataFrame, tmp_path: Path) -> None:
    model = ak.AdditiveModel("relief ~ saturation(dose) + a", data)
    whole = {"batch_size": len(data), "shuffle": False, "steps_per_epoch": 64, "validation_split": 0.0}
    model.fit(data, solver="adam", epochs=80, verbose=0, **whole)

    def law(rows: pd.DataFrame, height: float, half: float, constant: float, slope: float) -> Any:
        return height * rows.dose / (half + rows.dose) + constant + slope * rows.a

    wanted, _ = curve_fit(law, data, data.relief, [5.0, 3.0, 0.0, 1.0])
    layer = model.get_layer("saturation_dose")
    found = model.scale * float(layer.height), float(layer.half)
    np.testing.assert_allclose(found, wanted[:2], rtol=0.05)
    terms = model.predict(data, type="terms")
    np.testing.assert_allclose(terms.sum(axis=1) + model.intercept, model.predict(data), atol=1e-4)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    model.export(tmp_path / "served", verbose=False)
    with pytest.raises(DataError, match=r"`saturation\(dose\)` cannot be taken apart"):
        ak.effects(model)


@pytest.mark.usefixtures("saturation")
def test_what_a_call_may_say_is_checked(data: pd.DataFrame) -> None:
    with pytest.raises(FormulaError, match=r"Unknown argument `k` of `saturation\(\)`. Known: none"):
        ak.parse_formula("y ~ saturation(dose, k=3)")
    with pytest.raises(FormulaError, match=r"`saturation\(a\)` needs numbers of at least 0"):
        ak.AdditiveModel("y ~ saturation(a)", data)


def test_a_file_of_a_term_that_is_not_known(
    saturation: type[Any], data: pd.DataFrame, tmp_path: Path
) -> None:
    model = ak.AdditiveModel("relief ~ saturation(dose)", data)
    model.save(tmp_path / "model.keras")
    del TERMS["saturation"]
    with pytest.raises(
        DataError, match=r"kind 'saturation'.*which is not known here: import the module"
    ):
        ak.load_model(tmp_path / "model.keras")


def test_what_cannot_be_registered(saturation: type[Any]) -> None:
    assert ak.register_term(saturation) is saturation  # a cell of a notebook that runs again

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
    def lines(self) -> tuple[Any, ...]:
        return ()

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
