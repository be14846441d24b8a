"""Families by name, class, object and JSON; families of others."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ahofm_keras as ak
from ahofm_keras.errors import DataError
from ahofm_keras.families import (
    FAMILIES,
    LINKS,
    ExponentialFamily,
    Family,
    HalfDeviance,
    get_family,
    register_family,
)
from tests.families.cases import EVERY, ONE, OWN, every_link


@pytest.fixture
def clean() -> Iterator[None]:
    """A registry as it was."""
    before = dict(FAMILIES)
    yield
    FAMILIES.clear()
    FAMILIES.update(before)


def test_the_cases_of_these_tests_are_all_that_there_are() -> None:
    own = {
        name: family for name, family in FAMILIES.items() if family.__module__.startswith("ahofm_keras")
    }
    assert {name: family for name, family in own.items() if name in ONE} == {
        family.name: family for family in OWN
    }
    used = {link for family in own.values() for links in family.links.values() for link in links}
    assert used == set(LINKS)


@every_link
def test_json_and_back(family: Family) -> None:
    again = get_family(json.loads(json.dumps(family.to_json())))
    assert again == family
    assert hash(again) == hash(family)
    assert type(again) is type(family)
    assert again.link == family.link == next(iter(family.parameters.values())).name


def test_families_differ_by_name_and_link() -> None:
    assert len({repr(family) for family in EVERY}) == len(set(EVERY)) == len(EVERY)
    assert ak.families.Gamma() != ak.families.Gamma("inverse")
    assert ak.families.Gamma() != "gamma"


@every_link
def test_a_family_shows_how_it_is_made(family: Family) -> None:
    assert eval(repr(family), vars(ak.families)) == family


def test_a_name_a_class_and_an_object_are_the_same() -> None:
    for given in (
        "gamma",
        ak.families.Gamma,
        ak.families.Gamma(),
        {"name": "gamma"},
        ak.families.Gamma({"mean": "log"}),
    ):
        assert get_family(given) == ak.families.Gamma(link="log")
    inverse = ak.families.Gamma(link="inverse")
    assert get_family(inverse) is inverse


@pytest.mark.parametrize("family", OWN)
@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_a_family_cannot_have_is_refused(family: type[Family], link: str) -> None:
    allowed = family.links["mean"]
    if link in allowed:
        assert family(link).link == link
        return
    listed = ", ".join(f"`{name}`" for name in allowed)
    with pytest.raises(DataError) as caught:
        family(link)
    assert str(caught.value) == (
        f"The {family.name} family cannot have the link {link!r} for its mean. It can have: {listed}."
    )


def test_links_and_parameters_are_looked_at() -> None:
    with pytest.raises(
        DataError, match=r"'invers'.* Did you mean `inverse`\? It can have: `log`, `inverse`"
    ):
        ak.families.Gamma(link="invers")
    with pytest.raises(
        DataError, match=r"has no parameter 'means'. Did you mean `mean`. It has: `mean`."
    ):
        ak.families.Gamma(link={"means": "log"})
    with pytest.raises(DataError, match="cannot have the link 3 for its mean"):
        ak.families.Gamma(link=3)  # type: ignore[arg-type]


class Exponential(ExponentialFamily):
    """Waiting times."""

    name = "waiting"
    links = {"mean": ("log",)}  # noqa: RUF012
    support_text = "above 0"
    bounds = (0, np.inf)

    def log_density(self, y, parameters, xp=np):  # type: ignore[no-untyped-def]
        return -xp.log(parameters["mean"]) - y / parameters["mean"]

    def distribution(self, mean, dispersion=1.0):  # type: ignore[no-untyped-def]
        return stats.expon(scale=mean)


def test_a_log_density_gives_the_deviance_and_scipy_the_variance() -> None:
    y, mean = np.array([0.3, 2.0, 5.0]), np.array([1.0, 2.0, 0.5])
    wanted = 2 * (stats.expon.logpdf(y, scale=y) - stats.expon.logpdf(y, scale=mean))
    np.testing.assert_allclose(Exponential().unit_deviance(y, mean), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(Exponential().variance(mean), mean**2)


@pytest.mark.usefixtures("clean")
def test_a_registered_family_is_known_by_its_name() -> None:
    assert ak.register_family is register_family
    assert register_family(Exponential) is Exponential
    assert get_family("waiting") == Exponential()
    with pytest.raises(DataError, match=r"Known families: .*`waiting`"):
        get_family("nothing")
    again = type("Exponential", (Exponential,), {"__module__": __name__, "__qualname__": "Exponential"})
    register_family(again)  # a cell of a notebook that runs again
    assert type(get_family("waiting")) is again


@pytest.mark.usefixtures("clean")
def test_a_taken_name_is_refused() -> None:
    taken = type("Mine", (Exponential,), {"name": "gamma"})
    with pytest.raises(
        DataError,
        match=r"There is a family `gamma` already, ahofm_keras.families.positive.Gamma: give `Mine` another `name`\.",
    ):
        register_family(taken)
    assert FAMILIES["gamma"] is ak.families.Gamma


@pytest.mark.usefixtures("clean")
def test_what_lacks_something_is_refused() -> None:
    with pytest.raises(DataError, match=r"takes a subclass of `Family`. Received: 'gamma'"):
        register_family("gamma")  # type: ignore[type-var]
    with pytest.raises(DataError, match="`Nameless` has no `name`"):
        register_family(type("Nameless", (ExponentialFamily,), {}))
    parts = {"name": "mute", "links": {"mean": ("log",)}, "support_text": "above 0"}
    for base in (Family, ExponentialFamily):
        with pytest.raises(DataError, match="`mute` needs a `log_density` or a `unit_deviance`"):
            register_family(type("Mute", (base,), parts))


def test_a_family_of_a_file_that_nobody_registered_is_told() -> None:
    with pytest.raises(DataError, match=r"Unknown family 'mine'. Import the module that registers it"):
        get_family({"name": "mine", "links": {"mean": "log"}})


def test_a_config_with_a_plain_name_is_read() -> None:
    data = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": np.linspace(1, 2, 40) ** 2})
    model = ak.AdditiveModel("y ~ s(x)", data, family=ak.families.Gamma)
    config = json.loads(json.dumps(model.get_config()))
    assert config["family"] == {"name": "gamma", "links": {"mean": "log"}}
    again = ak.AdditiveModel.from_config({**config, "family": "gamma"})
    assert again.family == model.family
    assert repr(again) == "<AdditiveModel gamma(log): y ~ s(x)>"
    assert (
        HalfDeviance.from_config({**HalfDeviance("gamma").get_config(), "family": "gamma"}).family
        == model.family
    )
