"""Families by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ahofm_keras.errors import DataError, nearest
from ahofm_keras.families.base import Family
from ahofm_keras.families.exponential import ExponentialFamily
from ahofm_keras.families.names import advice_on, names_of_others, own_name

Kind = TypeVar("Kind", bound=type[Family])

FAMILIES: dict[str, type[Family]] = {}
_NEEDED = ("name", "links", "support_text")


def register_family(family: Kind) -> Kind:
    """Make a family known by its name, in formulas' models and in files.

    Args:
        family: a subclass of `Family` or `ExponentialFamily`; `register_family` is a decorator too. The
            class defined again, as in a notebook, takes its own place.

    Raises:
        DataError: no such class, or one that lacks something; a name that another family has.
    """
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise DataError(f"`register_family` takes a subclass of `Family`. Received: {family!r}.")
    missing = [name for name in _NEEDED if not hasattr(family, name)]
    if missing:
        raise DataError(f"The family `{family.__name__}` has no `{missing[0]}`.")
    own_likelihood = (
        family.log_density not in (Family.log_density, ExponentialFamily.log_density)
        or family.unit_deviance is not Family.unit_deviance
    )
    if not own_likelihood:
        raise DataError(f"The family `{family.name}` needs a `log_density` or a `unit_deviance`.")
    known = FAMILIES.get(family.name)
    if known is not None and _place(known) != _place(family):
        raise DataError(
            f"There is a family `{family.name}` already, {_place(known)}: give `{family.__name__}` "
            "another `name`."
        )
    FAMILIES[family.name] = family
    return family


def _place(family: type[Family]) -> str:
    return f"{family.__module__}.{family.__qualname__}"


def get_family(family: Any) -> Family:
    """The family that is meant.

    Args:
        family: a family, its class, its name, or what `to_json` gave.

    Raises:
        DataError: naming the families that there are.

    Example:
        >>> get_family("gamma")
        Gamma(link='log')
    """
    if isinstance(family, Family):
        return family
    if isinstance(family, type) and issubclass(family, Family):
        return family()
    name = family.get("name") if isinstance(family, Mapping) else family
    if not isinstance(name, str) or name not in FAMILIES:
        listed = ", ".join(f"`{known}`" for known in FAMILIES)
        raise DataError(f"Unknown family {_shown(name)}.{_hint(family)} Known families: {listed}.")
    return FAMILIES[name].from_json(family) if isinstance(family, Mapping) else FAMILIES[name]()


def _shown(name: Any) -> str:
    return repr(name) if isinstance(name, str | None) else type(name).__name__


def _hint(family: Any) -> str:
    """What to write in the place of a name, or of an object that other packages have for a family."""
    if isinstance(family, Mapping) and "log_prob" in family:
        return (
            f" It is a custom one, of the function `{family['log_prob']}`: make it by "
            "`ak.families.custom(...)` first, or import the module that does. Files import nothing."
        )
    if isinstance(family, Mapping):
        return " Import the module that registers it (`ak.register_family`) first."
    word = family if isinstance(family, str) else getattr(family, "__name__", type(family).__name__)
    own = own_name(word)
    if own is not None:
        return f" Here it is called `{own}`, of responses that are {FAMILIES[own].support_text}."
    advice = advice_on(word)
    if advice is not None:
        return f" {advice}"
    meant = nearest(word, [*FAMILIES, *names_of_others()])
    if meant is None:
        return "" if isinstance(family, str) else " Give its name."
    if meant in FAMILIES:
        return f" Did you mean `{meant}`?"
    return f" Did you mean `{meant}`?{_hint(meant)}"
