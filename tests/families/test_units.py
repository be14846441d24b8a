"""Start, null model, scales: what does not depend on the unit of the response, and what does."""

from __future__ import annotations

import numpy as np
import pytest

from ahofm_keras.errors import DataError
from ahofm_keras.families import Family, Gaussian, get_family
from tests.families.cases import draw, every_link, truth

X = np.linspace(-1, 1, 200)


@every_link
@pytest.mark.parametrize("reach", [None, 0.0, 0.3])
def test_start_solves_its_equation(family: Family, reach: float | None) -> None:
    y = draw(family, truth(family, X))
    offset = 0.0 if reach is None else np.random.default_rng(1).uniform(-reach, reach, len(y))
    start = family.start(y, offset)
    fitted = np.broadcast_to(family.inverse_link(start + np.asarray(offset), np), y.shape)
    assert fitted.mean() == pytest.approx(y.mean(), rel=1e-9)
    assert family.is_valid(start + np.asarray(offset)).all()


@every_link
def test_the_null_mean_has_the_least_deviance(family: Family) -> None:
    y = draw(family, truth(family, X))
    offset = np.random.default_rng(1).uniform(-0.2, 0.2, len(y))
    found = family.null_mean(y, offset)
    eta = np.asarray(family.link_function(found)) - offset
    assert np.ptp(eta) < 1e-6
    least = family.unit_deviance(y, found, np).sum()
    for step in (-1e-2, 1e-2):
        assert family.unit_deviance(y, family.inverse_link(eta + step + offset, np), np).sum() > least


@every_link
def test_rough_means_are_inside_the_range_of_the_link(family: Family) -> None:
    y = draw(family, truth(family, X), dispersion=2.0)
    eta = np.asarray(family.link_function(family.rough_mean(y, float(y.mean()))))
    assert np.isfinite(eta).all()
    assert family.is_valid(eta).all()


@every_link
def test_the_scale_of_the_predictor_goes_with_the_unit_of_the_response(family: Family) -> None:
    y = draw(family, truth(family, X))
    scale = family.predictor_scale(y)
    if family.dispersion_known:
        assert scale == 1
        assert family.dispersion_unit(family.start(y), scale) == 1
        return
    power = {"identity": 1, "log": 0, "inverse": -1}[family.link]
    for unit in (1e-6, 1e3):
        assert family.predictor_scale(unit * y) == pytest.approx(scale * unit**power, rel=1e-9)
        inside = family.dispersion_unit(family.start(unit * y), family.predictor_scale(unit * y))
        wanted = np.var(unit * y) if isinstance(family, Gaussian) else 1.0
        assert inside == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_the_usual_links_standardise_as_they_should(family: str) -> None:
    y = draw(get_family(family), truth(get_family(family), X))
    offset = np.random.default_rng(1).uniform(-0.2, 0.2, len(y))
    wanted = np.std(y - offset) if family == "gaussian" else 1.0
    assert get_family(family).predictor_scale(y, offset) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("link", ["log", "inverse"])
def test_a_mean_outside_the_range_of_the_link_is_told(link: str) -> None:
    with pytest.raises(DataError) as caught:
        Gaussian(link).start(np.array([-3.0, 1.0]))
    assert str(caught.value).startswith(
        f"The mean of the response is -1, and the {link} link has means between 0 and inf only. Take "
        "another link of the gaussian family: `identity`"
    )


@every_link
def test_dispersions(family: Family) -> None:
    found = family.estimate_dispersion(6.0, 3.0)
    assert found == (1.0 if family.dispersion_known else 2.0)
    assert family.estimate_dispersion(0.0, 3.0) > 0


@every_link
def test_bounds_hold_the_support(family: Family) -> None:
    low, high = family.bounds
    y = draw(family, truth(family, X))
    assert ((y >= low) & (y <= high)).all()
    assert family.support(y).all()
    assert not family.support(np.array([np.nan, np.inf, -np.inf])).any()
    if np.isfinite(low):
        assert not family.support(np.array([low - 1]))[0]
