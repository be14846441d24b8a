"""`fit(init_from=other)`: a fit begins at the terms of another model."""

from __future__ import annotations

import warnings
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak

ROWS = 300
TERMS = [
    "s(x1) + x2 + g",
    "s(x1, shape='increasing') + te(x2, x3)",
    "s(x1, by=g) + s(g, bs='re') + s(x2, atoms=False)",
    "s(x1, g, bs='fs') + ti(x2, x3)",
    "s(x1, pc=0) + ridge(x2, x3)",
    "s(x1, x2) + lasso(x3, g)",
    "ahofm(x1, x2, x3, D=3, F=2, k=6)",
]


def make_frame(seed: int = 0, rows: int = ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.uniform(-1, 1, (rows, 3)), columns=["x1", "x2", "x3"])
    data["g"] = rng.choice(["a", "b", "c"], rows)
    signal = 2 * data.x1 + np.sin(3 * data.x2) + 2 * data.x1 * data.x2 + (data.g == "b")
    return data.assign(y=signal + 0.3 * rng.normal(size=rows))


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    return make_frame()


@pytest.fixture(scope="module")
def product(data: pd.DataFrame) -> ak.AdditiveModel:
    """A fit of interactions that nobody changes."""
    model = ak.AdditiveModel("y ~ ahofm(x1, x2, x3, D=2, F=2, k=6)", data)
    model.fit(data, restarts=0, verbose=0)
    return model


@pytest.fixture(scope="module")
def smooth(data: pd.DataFrame) -> ak.AdditiveModel:
    model = ak.AdditiveModel("y ~ s(x1) + s(x2) + g", data)
    model.fit(data, verbose=0)
    return model


@pytest.mark.parametrize("terms", TERMS)
def test_before_its_first_epoch_a_model_of_the_same_terms_predicts_what_the_other_does(
    data: pd.DataFrame, terms: str
) -> None:
    """Whatever the terms, and the units in which the response is standardised."""
    x, unit = data.drop(columns="y"), 100.0
    other = ak.AdditiveModel(f"y ~ {terms}", data)
    rng = np.random.default_rng(3)
    for weight in (own for layer in other.fitted_layers() for own in layer.trainable_variables):
        values = rng.normal(size=weight.shape) / 10
        weight.assign(values if weight.constraint is None else np.abs(values))  # in its shape
    model = ak.AdditiveModel(f"y ~ {terms}", x)
    model.fit(x, unit * data.y, solver="bcd", epochs=0, init_from=other, verbose=0)
    assert model.scale == pytest.approx(unit * other.scale)
    spread = other.predict(data, type="link").std()
    difference = model.predict(data, type="terms") - other.predict(data, type="terms")
    assert np.abs(difference.to_numpy()).max() < 1e-5 * spread
    assert model.intercept == pytest.approx(other.intercept, abs=1e-5 * spread)


@pytest.mark.parametrize("solver", ["variational", "bcd"])
def test_a_fit_with_a_term_more_begins_where_the_other_ended(data: pd.DataFrame, solver: str) -> None:
    """Poisson, because one step solves a gaussian model at given smoothing."""
    counts = data.assign(y=np.random.default_rng(1).poisson(np.exp(data.y / 2)))
    other = ak.AdditiveModel("y ~ s(x1) + s(x2) + g", counts, family="poisson")
    other.fit(counts, solver=solver, verbose=0)
    formula = "y ~ s(x1) + s(x2) + g + s(x3)"
    anew, begun = (ak.AdditiveModel(formula, counts, family="poisson") for _ in range(2))
    first = anew.fit(counts, solver=solver, verbose=0)
    second = begun.fit(counts, solver=solver, verbose=0, init_from=other)
    assert second.history["loss"][0] <= first.history["loss"][0]
    assert begun.fit_result.warnings == ()
    if solver == "bcd":
        assert begun.predict(counts) == pytest.approx(anew.predict(counts), rel=1e-3)
    else:  # the smoothing has several optima: the one that it begins near is no worse
        assert second.history["bound"][-1] > first.history["bound"][-1] - 0.05


@pytest.mark.filterwarnings("ignore:The fit reached its last epoch")
def test_mini_batches_begin_there_too(data: pd.DataFrame, smooth: ak.AdditiveModel) -> None:
    model = ak.AdditiveModel("y ~ s(x1) + s(x2) + g + s(x3)", data)
    model.fit(data, solver="adam", epochs=1, init_from=smooth, verbose=0)
    noise = [np.std(own.predict(data) - data.y) for own in (smooth, model)]
    assert noise[1] < 1.1 * noise[0]


@pytest.mark.parametrize("more", ["", " + g"])
def test_interactions_go_on_from_the_factors_of_the_other(
    data: pd.DataFrame, product: ak.AdditiveModel, more: str
) -> None:
    formula = product.formula + more
    anew, begun = (ak.AdditiveModel(formula, data) for _ in range(2))
    first = anew.fit(data, restarts=0, verbose=0)
    second = begun.fit(data, verbose=0, init_from=product)
    assert begun.starts == 1  # as every fit that goes on
    assert second.history["bound"][-1] > first.history["bound"][-1] - 0.5
    assert second.history["bound"][0] > first.history["bound"][0] + 5
    assert len(second.epoch) < len(first.epoch)
    assert begun.predict(data) == pytest.approx(anew.predict(data), abs=0.02)


def test_units_of_factors_and_of_their_smoothing(data: pd.DataFrame, product: ak.AdditiveModel) -> None:
    """The first sweep leads to where it leads in the units of the other model."""
    x = data.drop(columns="y")
    model, same = (ak.AdditiveModel(product.formula, x) for _ in range(2))
    mixed = np.where(np.arange(ROWS) == 0, 1e3, data.y)  # so that the response has another scale
    model.fit(x, mixed, solver="bcd", epochs=0, verbose=0)
    assert model.scale > 10 * product.scale
    begun = model.fit(data, verbose=0, init_from=product).history
    usual = same.fit(data, verbose=0, init_from=product).history
    assert begun["edf"][0] == pytest.approx(usual["edf"][0], rel=1e-3)


def test_what_other_rows_need_is_found_though_the_other_had_switched_it_off(
    data: pd.DataFrame,
) -> None:
    """Smoothing of a straight line, and no factors at all, are where the fit begins."""
    rng = np.random.default_rng(2)
    flat = data.assign(y=data.x3 + 0.3 * rng.normal(size=ROWS))
    formula = "y ~ ahofm(x1, x2, D=2, F=2, k=6) + s(x3)"
    other = ak.AdditiveModel(formula, flat)
    other.fit(flat, restarts=0, verbose=0)
    assert ak.summary(other).figures["edf"] < 5
    anew, begun = (ak.AdditiveModel(formula, data) for _ in range(2))
    anew.fit(data, restarts=0, verbose=0)
    begun.fit(data, verbose=0, init_from=other)
    noise = [np.std(own.predict(data) - data.y) for own in (anew, begun)]
    assert noise[1] == pytest.approx(noise[0], rel=0.02)


def test_a_lambda_that_the_user_gave_stays(data: pd.DataFrame, smooth: ak.AdditiveModel) -> None:
    formula = "y ~ s(x1, sp=0.5) + s(x2) + g"
    anew, begun = (ak.AdditiveModel(formula, data) for _ in range(2))
    anew.fit(data, verbose=0)
    begun.fit(data, verbose=0, init_from=smooth)
    assert begun.predict(data) == pytest.approx(anew.predict(data), abs=1e-3)


def test_it_says_what_it_takes_and_saves_and_reloads_the_rest(
    data: pd.DataFrame, smooth: ak.AdditiveModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smooth.save(tmp_path / "smooth.keras")
    loaded = keras.models.load_model(tmp_path / "smooth.keras")
    model = ak.AdditiveModel("y ~ s(x2) + g + s(x3)", data)
    model.fit(data, init_from=loaded)
    assert "Starting from the other model's `s(x2)`, `g`." in capsys.readouterr().out
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.predict(data) == pytest.approx(model.predict(data), abs=1e-6)


@pytest.mark.parametrize(
    ("formula", "chosen", "message"),
    [
        ("y ~ s(x1, k=9)", slice(None), "`x1` has 8 functions here"),
        ("y ~ s(x1)", slice(0, 250), "the basis of `x1` has other knots or levels in the other model"),
        ("y ~ g", slice(0, 250), "levels, or centre and scale, were learned from other rows"),
    ],
)
def test_terms_that_do_not_agree_are_named(
    data: pd.DataFrame, smooth: ak.AdditiveModel, formula: str, chosen: slice, message: str
) -> None:
    rows = data.iloc[chosen]
    anew, model = (ak.AdditiveModel(formula, rows) for _ in range(2))
    anew.fit(rows, verbose=0)
    with pytest.warns(ak.AhofmWarning, match=message):
        model.fit(rows, init_from=smooth, verbose=0)
    assert any(message in note for note in model.fit_result.warnings)
    assert model.predict(rows) == pytest.approx(anew.predict(rows), abs=1e-6)


def test_nothing_to_take_is_warned_of(data: pd.DataFrame, smooth: ak.AdditiveModel) -> None:
    model = ak.AdditiveModel("y ~ s(x3)", data)
    with pytest.warns(ak.AhofmWarning, match=r"no effect: the model has the terms `s\(x3\)`, the other"):
        model.fit(data, init_from=smooth, verbose=0)


def test_factors_that_no_variational_fit_can_begin_at(
    data: pd.DataFrame, smooth: ak.AdditiveModel, product: ak.AdditiveModel
) -> None:
    def tell(formula: str, other: ak.AdditiveModel, *messages: str) -> None:
        model = ak.AdditiveModel(formula, data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ak.AhofmWarning)
            model.fit(data, init_from=other, restarts=0, epochs=1, verbose=0)
        notes = " ".join(model.fit_result.warnings)
        assert all(message in notes for message in messages)

    fewer = product.formula.replace("F=2", "F=3")
    tell(fewer, product, "the other model's has other options", "drawn at random")
    tell(f"{product.formula} + g", smooth, "drawn at random")
    average = ak.AdditiveModel(product.formula, data, starts=2)
    average.fit(data, restarts=1, verbose=0)
    tell(product.formula, average, "an average of 2 fits")
    descent = ak.AdditiveModel(product.formula, data)
    descent.fit(data, solver="bcd", verbose=0)
    tell(product.formula, descent, "not those of a variational fit")


def test_what_cannot_be_meant(data: pd.DataFrame, smooth: ak.AdditiveModel) -> None:
    model = ak.AdditiveModel("y ~ s(x1)", data)
    counts = data.assign(y=np.round(np.abs(data.y)))

    def refuses(other: object, message: str, own: ak.AdditiveModel = model, **options: object) -> None:
        with pytest.raises(ak.DataError, match=message):
            own.fit(counts, init_from=other, verbose=0, **options)

    refuses("smooth", "takes a fitted `AdditiveModel`")
    refuses(model, "goes on by itself")
    refuses(smooth, "`restarts` draws starts at random", restarts=2)
    poisson = ak.AdditiveModel("y ~ s(x1)", counts, family="poisson")
    refuses(smooth, "has the identity link, this one the log link", poisson)
    refuses(
        smooth, r"of `y`, this one of `log\(y \+ 1\)`", ak.AdditiveModel("log(y + 1) ~ s(x1)", counts)
    )
    both = ak.AdditiveModel({"loc": "y ~ s(x1)", "scale": "~ s(x1)"}, data, family="gaussian_ls")
    refuses(smooth, "with one predictor", both)
    with pytest.raises(ak.NotFittedError, match="is not fitted"):
        model.fit(data, init_from=ak.AdditiveModel("y ~ s(x1)", data), verbose=0)
    assert not model.is_fitted
