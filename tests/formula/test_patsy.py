"""The grammar of terms is patsy's: any tree of operators gives the terms that patsy gives."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from patsy import ModelDesc

from ahofm_keras.formula import parse_formula

OPERATORS = ("+", "-", "*", "/", ":")


def bracketed(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    chains = st.builds(
        lambda first, rest: first + "".join(f" {operator} {part}" for operator, part in rest),
        parts,
        st.lists(st.tuples(st.sampled_from(OPERATORS), parts), min_size=1, max_size=4),
    )
    brackets = chains.map(lambda text: f"({text})")
    return chains | brackets | st.builds("({} + {})**{}".format, parts, parts, st.integers(1, 4))


TREES = st.recursive(st.sampled_from(["a", "b", "c", "log(d)"]), bracketed, max_leaves=8)


def patsy_terms(text: str) -> tuple[bool, list[list[str]]]:
    terms = ModelDesc.from_formula(text).rhs_termlist
    named = [[factor.name() for factor in term.factors] for term in terms if term.factors]
    return any(not term.factors for term in terms), named


@settings(derandomize=True, deadline=None, max_examples=1000)
@given(TREES)
def test_any_tree_gives_the_terms_of_patsy(tree: str) -> None:
    _, expected = patsy_terms(f"y ~ {tree}")
    assume(expected)
    formula = parse_formula(f"y ~ {tree}")
    assert [[str(feature) for feature in term.features] for term in formula.terms] == expected


@settings(derandomize=True, deadline=None, max_examples=500)
@given(st.lists(st.tuples(st.sampled_from("+-"), st.sampled_from(["0", "1", "b", "c"])), max_size=6))
def test_any_sum_has_an_intercept_where_patsy_has_one(rest: list[tuple[str, str]]) -> None:
    text = "y ~ a" + "".join(f" {sign} {term}" for sign, term in rest)
    formula = parse_formula(text)
    terms = [[str(feature) for feature in term.features] for term in formula.terms]
    assert (formula.intercept, terms) == patsy_terms(text)


@pytest.mark.parametrize("text", ["y ~ a*b*c*d", "y ~ (a + b + c + d)**3 - a:b", "y ~ a/(b + c)*d"])
def test_known_formulas_give_the_terms_of_patsy(text: str) -> None:
    terms = [[str(feature) for feature in term.features] for term in parse_formula(text).terms]
    assert terms == patsy_terms(text)[1]
