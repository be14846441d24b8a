"""All families in one table."""

from __future__ import annotations

import pandas as pd

from ahofm_keras.families.base import Family
from ahofm_keras.families.names import names_elsewhere
from ahofm_keras.families.registry import FAMILIES


def overview() -> pd.DataFrame:
    """The families that are registered, a row each, by name.

    Columns are the `class` in `ak.families`, the `parameters` with the links that each may have, the
    usual one first, the `response` and what a few other packages call the family.
    """
    rows = {name: _describe(family) for name, family in FAMILIES.items()}
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["class", "parameters", "response", "elsewhere"]
    )


def _describe(family: type[Family]) -> tuple[str, str, str, str]:
    parameters = "; ".join(f"{name}: {', '.join(links)}" for name, links in family.links.items())
    return family.__name__, parameters, family.support_text, ", ".join(names_elsewhere(family.name))
