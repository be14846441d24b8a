"""Whatever text comes in, the parser answers with a `Formula` or a `FormulaError`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahofm_keras.errors import FormulaError
from ahofm_keras.formula.parse import Formula, parse_formula

COLUMNS = ("y", "x", "z", "g", "a b", "µ")

TOKENS = """
    y x z g µ nan s(.) s C I Q afm ahofm fm hofm offset log poly scale sqrt lambda class None True __class__
    ~ + - * / : ** . ( ) [ ] { } , = := == @ % & | ^ < > ! ? $ ; ` # ... -> // \\ " '
    0 1 2 3 10 1.5 .5 1e999 0x1F 1_0 2j ² D= F= df= k= bs= knots= sp= main= orders= center=
    "ps" "a~b" 'x' Q("a~b") "adaptive" f"{x}" r"\\d" b"x" \"\"\"
""".split()

VALID = (
    "y ~ s(x) + ahofm(x, z, D=2, F=(10,), df=(15, 8))",
    'log(y) ~ . - x + s(x, k=10, knots=(0, 24), bs="cp")',
    'I(y / 100) ~ (x + z)**2 - x:z + C(g) + Q("a b") - 1',
    "y ~ hofm(., orders=(2, 3), sp=0.5, main=False) + offset(log1p(z))",
    "y ~ s(., k=8) - g + g:x - (x*z - x) + ahofm(x, z, g, orders=(3, 2), F=(9, 5))",
    'y ~ afm(µ, z, df={"µ": 3}, k={z: 5}) + poly(x, 3) + I(-x**2 + 1.5 * z)',
)

CHARACTERS = st.characters(exclude_categories=())


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid formula with a few stretches cut out, doubled, or replaced by others."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        piece = draw(st.one_of(st.just(""), st.sampled_from(TOKENS), st.text(CHARACTERS, max_size=3)))
        repeats = draw(st.integers(0, 2))
        text = text[:start] + piece + text[start:end] * repeats + text[end:]
    return text


def check(text: str) -> None:
    """Parses with usable labels, or raises a `FormulaError` whose carets lie under the text."""
    try:
        formula = parse_formula(text, COLUMNS)
    except FormulaError as error:
        assert error.message.strip()
        if error.span is not None:
            assert error.text is not None
            assert 0 <= error.span[0] < error.span[1] <= len(error.text)
        return
    assert isinstance(formula, Formula)
    assert formula.terms or formula.intercept
    assert all(term.label for term in formula.terms)
    assert not set(formula.columns()) & set(formula.response.columns())
    assert parse_formula(formula.text) == formula
    for feature in (feature for term in formula.terms for feature in term.features):
        assert parse_formula(f"other ~ {feature}").terms[0].features == (feature,)


@settings(derandomize=True, deadline=None, max_examples=1000)
@given(
    st.sampled_from(["{}", "y ~ {}", "{} ~ x", "y ~ s({})", "y ~ I({})", 'y ~ Q("{}")']),
    st.text(CHARACTERS, max_size=40),
)
def test_any_text_parses_or_is_a_formula_error(frame: str, text: str) -> None:
    check(frame.replace("{}", text))


@settings(derandomize=True, deadline=None, max_examples=1500)
@given(st.sampled_from(["", "y ~ "]), st.lists(st.sampled_from(TOKENS), max_size=12), st.booleans())
def test_any_tokens_parse_or_are_a_formula_error(start: str, tokens: list[str], spaced: bool) -> None:
    check(start + (" " if spaced else "").join(tokens))


@settings(derandomize=True, deadline=None, max_examples=1500)
@given(mutated())
def test_any_mutation_parses_or_is_a_formula_error(text: str) -> None:
    check(text)


NASTY = {
    "null byte": "y ~ x\0",
    "null byte in a call": "y ~ s(x\0)",
    "null byte in a quote": 'y ~ Q("\0")',
    "surrogate": "y ~ \ud800",
    "surrogate in a quote": 'y ~ Q("\udfff")',
    "escaped surrogate": r'y ~ Q("\ud800")',
    "unknown escape": r'y ~ Q("\d\N{nope}")',
    "byte order mark": "\ufeffy ~ x",
    "no-break space": "y\u00a0~ x",
    "line separator": "y ~ x\u2028+ z",
    "form feed": "y ~ x\f+ z",
    "vertical tab and next line": "y ~ x\v+ z\x85",
    "only a form feed": "\f",
    "backslash": "y ~ x \\",
    "backslash and newline": "y ~ x \\\n + z",
    "superscript digit": "y ~ (x + z)**²",
    "superscript digit as a term": "y ~ ²",
    "arabic digit": "y ~ (x + z)**٣",
    "huge float": "y ~ I(x * 1e999)",
    "huge int": f"y ~ I(x * {'9' * 400})",
    "int past Python's limit": f"y ~ s(x, k={'9' * 5000})",
    "term past Python's limit": f"y ~ {'9' * 5000}",
    "huge power": f"y ~ (x + z)**{'9' * 5000}",
    "power of a power": "y ~ ((((x + z + g)**10)**10)**10)**10",
    "power inside arithmetic": "y ~ I(x**9**9**9**9**9)",
    "negative power": "y ~ x**-1",
    "open brackets": "(" * 5000,
    "nested brackets": f"y ~ {'(' * 5000}x{')' * 5000}",
    "nested features": f"y ~ s({'(' * 5000}x{')' * 5000})",
    "nested functions": f"y ~ {'log(' * 90}x{')' * 90}",
    "nested functions without end": f"y ~ {'log(' * 5000}x{')' * 5000}",
    "nested lists": f"y ~ s(x, k={'[' * 150}{']' * 150})",
    "nested attributes": "y ~ x" + ".x" * 3000,
    "long sum of terms": "y ~ " + " + ".join(f"x{number}" for number in range(5000)),
    "long row of signs": f"y ~ x {'+' * 5000} z",
    "long arithmetic": f"y ~ I({' + '.join(['x'] * 900)})",
    "longer arithmetic": f"y ~ I({' + '.join(['x'] * 9000)})",
    "many minus signs": f"y ~ I({'-' * 900}x)",
    "many minus signs in an option": f"y ~ s(x, k={'-' * 900}3)",
    "many tildes": "y ~ x " * 2000,
    "long name": f"y ~ {'x' * 90_000}",
    "many dots": "y ~ " + " + ".join(["."] * 200),
    "dots in a row": "y ~ ... .. .",
    "f-string as the response of a dot": 'Q(f"{x}") ~ .',
    "dunder": "y ~ __class__ + s(__debug__)",
    "power of a smooth": "y ~ s(x)**2",
    "nested term": "y ~ x / z",
    "nothing left": "y ~ x - x",
    "two tildes": "y ~ x ~ z",
    "no tilde": "y == x",
    "look-alike names": "y ~ s(\u00b5) + s(\u03bc) + ｌｏｇ(x)",
    "invalid decimal": "y ~ s(x, k=1or 2) + 0x1for + 1_",
    "unclosed triple quotes": "y ~ Q('''a'') + Q(\"\"\"b\")",
    "bytes as the response of a dot": 'Q(b"x") ~ .',
    "dot in a dict": "y ~ afm(., k={.: 3})",
    "dot in brackets of a call": "y ~ afm((.), x)",
    "square of a dot over one column": "y ~ (. - x - z - g - Q('a b'))**2",
    "constant that is no number": "y ~ I(x * sqrt(-1))",
    "unpacked dict": "y ~ afm(x, z, k={**x})",
    "unhashable key": "y ~ afm(x, z, k={[1]: 2, {}: 3})",
    "unhashable order": "y ~ ahofm(x, z, orders=([2], {x: 3}))",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_nasty_text_parses_or_is_a_formula_error(text: str) -> None:
    check(text)
