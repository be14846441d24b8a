"""The paper's five models for every parameter of a family."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras.families import FAMILIES, get_family

ZOO = (ak.gam, ak.fm, ak.hofm, ak.afm, ak.ahofm, ak.nam)
FEW = {"gam": {"k": 5}, "fm": {"F": 1}, "hofm": {"D": 2, "F": 1}, "nam": {"units": (4,)}}
SEVERAL = [
    name
    for name, family in FAMILIES.items()
    if len(family.links) > 1 and family.__module__.startswith("ahofm_keras.") and not family.is_loss
]


def options_of(function: Any) -> dict[str, Any]:
    """Few functions and factors: these models are built, not used."""
    return FEW.get(function.__name__, {"F": 1, "k": 5, **({"D": 2} if function is ak.ahofm else {})})


def frame_of(name: str, rows: int = 80) -> pd.DataFrame:
    """Responses of a family whose predictors are all straight lines."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, (rows, 2)), columns=["x", "z"])
    family = get_family(name)
    etas = {own: 0.3 + 0.2 * frame.x.to_numpy() for own in family.parameters}
    with np.errstate(all="ignore"):
        frame["y"] = family.distribution_of(family.inverse_links(etas)).rvs(random_state=rng)
    return frame


@pytest.mark.parametrize("name", SEVERAL)
def test_a_family_whose_parameters_all_have_the_same_model(name: str) -> None:
    """Every family, fitted for a moment: each predictor is that of the model."""
    function = ZOO[SEVERAL.index(name) % len(ZOO)]
    first, *others = get_family(name).parameters
    further = {{"df": "nu"}.get(own, own): True for own in others}
    model = function(frame_of(name), "y", family=name, **options_of(function), **further)
    assert list(model.formula) == [first, *others]
    assert len({own.partition("~")[2].strip() for own in model.formula.values()}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ak.AhofmWarning)  # one round is too few to converge
        model.fit(frame_of(name), epochs=1, verbose=0)
    parameters = model.predict(frame_of(name), type="parameters")
    assert list(parameters) == [first, *others]
    assert np.isfinite(parameters.to_numpy()).all()
    for own in others:
        assert ak.explain(model, frame_of(name).iloc[[0]], parameter=own).parameter == own


@pytest.mark.parametrize("function", ZOO)
def test_what_a_parameter_may_be(function: Any) -> None:
    frame, few = frame_of("gaussian_ls"), options_of(function)

    def formula(**further: Any) -> Any:
        return function(frame, "y", **few, **further).formula

    alone = formula()
    assert formula(scale=True) == {"loc": alone, "scale": alone}
    assert formula(sigma="~ s(x, k=5)") == {"loc": alone, "scale": "y ~ s(x, k=5)"}
    assert formula(scale=False) == formula(scale=None) == {"loc": alone, "scale": "y ~ 1"}
    own = function(frame, "y", ["x", "z"], **few, scale=("z", "x")).formula
    text = own["scale"].replace("z", "#").replace("x", "z").replace("#", "x")
    assert text == own["loc"]


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (
            {"skale": True},
            "`afm()` has no argument `skale`. Did you mean `scale`? Further parameters of",
        ),
        ({"famly": "gamma"}, "`afm()` has no argument `famly`. Did you mean `family`?"),
        ({"family": "poisson", "scale": True}, "of the poisson family: none."),
        ({"loc": True}, "`loc` is what `afm()` models itself"),
        ({"scale": 3}, '`scale` must be True (the same model), a formula such as "~ s(x1)" or a list'),
        ({"scale": "s(x)"}, "Received: 's(x)'."),
        ({"scale": True, "sigma": True}, "The parameter `scale` was given twice, once as `sigma`."),
        ({"scale": ["x", "zz"]}, "Column `zz` is missing."),
        ({"scale": []}, "`columns` must be a list of column names."),
    ],
)
def test_bad_parameters(further: dict[str, Any], message: str) -> None:
    with pytest.raises(ak.DataError) as error:
        ak.afm(frame_of("gaussian_ls"), "y", F=1, k=5, **further)
    assert message in str(error.value)
