"""What a family is called and made of: its parameters, their links, its words; as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from ahofm_keras.errors import DataError, did_you_mean, nearest
from ahofm_keras.families.links import LINKS, Link
from ahofm_keras.families.meanings import meaning_of

Array = Any
Namespace = Any
Parameters = Mapping[str, Array]
Links = Mapping[str, tuple[str, ...]]


class Signature:
    """Names, parameters and links of a family; `Family` says what each is."""

    name: ClassVar[str]
    links: ClassVar[Links]
    support_text: ClassVar[str]
    aliases: ClassVar[Mapping[str, str]] = {}
    forms: ClassVar[tuple[str, ...]] = ("column",)
    bounds: ClassVar[tuple[float, float]] = (-inf, inf)
    dispersion_known: ClassVar[bool] = True
    discrete: ClassVar[bool] = False
    with_dispersion: ClassVar[str | None] = None
    binary: ClassVar[bool] = False
    labelled: ClassVar[bool] = False
    nuisance: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    classes: ClassVar[tuple[Any, ...]] = ()
    shared: ClassVar[str | None] = None
    unshared: ClassVar[tuple[str, ...]] = ()
    levels: tuple[float, ...] = ()
    is_loss: ClassVar[bool] = False
    constant_variance: ClassVar[bool] = False
    least_slope: ClassVar[float] = 1e-10
    variance_text: ClassVar[str] = "what the family says"
    remedies: ClassVar[Mapping[str, str]] = {}
    predicts: ClassVar[str] = "the average"
    result_label: ClassVar[str] = "Predicted"
    meanings: ClassVar[Mapping[str, str]] = {}
    reader_note: ClassVar[str] = ""

    def __init__(self, link: str | Mapping[str, str] | None = None) -> None:
        first = next(iter(self.links), "")
        given = {} if link is None else link if isinstance(link, Mapping) else {first: link}
        chosen: dict[str, str] = {}
        for name, own_link in given.items():
            parameter = self.own_parameter(name)
            if parameter is None:
                raise self.no_parameter(name, self.links)
            if parameter in chosen:
                raise DataError(
                    f"The parameter `{parameter}` of the {self.name} family has two links: "
                    f"{chosen[parameter]!r} and {own_link!r}."
                )
            chosen[parameter] = own_link
        self.parameters: dict[str, Link] = {
            parameter: self._find_link(parameter, chosen.get(parameter, allowed[0]))
            for parameter, allowed in self.links.items()
        }

    def _find_link(self, parameter: str, name: Any) -> Link:
        allowed = self.links[parameter]
        if name not in allowed:
            hint = "" if name in LINKS else did_you_mean(str(name), allowed)
            raise DataError(
                f"The {self.name} family cannot have the link {name!r} for its {parameter}.{hint} "
                f"It can have: {listed(allowed)}."
            )
        return LINKS[name]

    # Names and JSON -----------------------------------------------------------------------------

    @property
    def link(self) -> str:
        """Name of the link of the first parameter."""
        return self._link.name

    @property
    def _link(self) -> Link:
        return next(iter(self.parameters.values()))

    def options(self) -> dict[str, Any]:
        """Further arguments of the constructor, as JSON."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """All that the family is made of; `get_family` reads it."""
        links = {parameter: link.name for parameter, link in self.parameters.items()}
        return {"name": self.name, "links": links, **self.options()}

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> Self:
        """The family of what `to_json` gave."""
        options = {key: value for key, value in config.items() if key not in ("name", "links")}
        return cls(config.get("links"), **options)

    @property
    def only_for_mini_batches(self) -> str | None:
        """Why no block solver can fit the family, in words, or None."""
        return None

    def check_saved(self) -> None:
        """Raise a `DataError` where a file could not say what the family is made of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        links = {parameter: link.name for parameter, link in self.parameters.items()}
        shown = {"link": self.link if len(links) == 1 else links, **self.options()}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in shown.items())})"

    # Parameters ---------------------------------------------------------------------------------

    def own_parameter(self, name: str) -> str | None:
        """The family's own name of a parameter, which other packages may call otherwise."""
        return name if name in self.links else self.aliases.get(name)

    def no_parameter(self, name: Any, known: Iterable[str], owner: str | None = None) -> DataError:
        """The error for a name that is none of the known parameters, nor what others call one."""
        names = list(known)
        others = {other: own for other, own in self.aliases.items() if own in names}
        meant = nearest(str(name), [*names, *others])
        here = f", which is `{others[meant]}` here" if meant in others else ""
        hint = "" if meant is None else f" Did you mean `{meant}`{here}?"
        owner = owner or f"The {self.name} family"
        return DataError(f"{owner} has no parameter {name!r}.{hint} It has: {listed(names)}.")

    def meaning(self, parameter: str) -> str:
        """What a parameter is, in words."""
        return self.meanings.get(parameter) or meaning_of(parameter)

    def quantity(self, parameter: str, response: Any) -> str:
        """What a predictor is transformed to, in words: the response, or a parameter of it.

        Args:
            parameter: whose predictor it is.
            response: of the formula, an `Expression`.
        """
        return str(response) if len(self.parameters) == 1 else f"{parameter} of {response}"

    def link_words(self, parameter: str) -> str:
        """How a parameter and its predictor are related, in a title."""
        return f"{self.parameters[parameter].name} link"

    # Links --------------------------------------------------------------------------------------

    def inverse_links(self, etas: Parameters, xp: Namespace = np) -> dict[str, Array]:
        """Parameters of the distribution from their predictors."""
        return {name: link.inverse(etas[name], xp) for name, link in self.parameters.items()}

    def named(self, outputs: Array) -> dict[str, Array]:
        """Parameters by name, from an array of the first one, or with a last axis for all."""
        if len(self.parameters) == 1:
            return {next(iter(self.parameters)): outputs}
        return {name: outputs[..., place] for place, name in enumerate(self.parameters)}

    def link_function(self, mean: Array, xp: Namespace = np) -> Array:
        """From the first parameter to its predictor."""
        return self._link.function(mean, xp)

    def inverse_link(self, eta: Array, xp: Namespace = np) -> Array:
        """From the predictor to the first parameter."""
        return self._link.inverse(eta, xp)

    def slope(self, eta: Array, xp: Namespace = np) -> Array:
        """Derivative of the first parameter by its predictor."""
        return self._link.derivative(eta, xp)

    def is_valid(self, eta: np.ndarray) -> np.ndarray:
        """Which predictors belong to a mean: those of an inverse or square root must be above 0."""
        return self._link.holds(eta)

    def mean_interval(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means between two predictors."""
        ends = self._link.limit(low), self._link.limit(high)
        return ends if self._link.increasing else ends[::-1]

    @property
    def is_linear(self) -> bool:
        """Whether the response is its own working response, with weights that never change."""
        return self._link.is_identity and self.constant_variance


def listed(names: Iterable[Any]) -> str:
    """Names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)
