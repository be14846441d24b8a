"""A table: formula -> intercept, response, terms."""

from __future__ import annotations

from typing import Any

import pytest

from ahofm_keras.formula.parse import parse_formula
from ahofm_keras.transforms import column

COLUMNS = ("y", "x", "z", "g", "a b")

Row = tuple[str, bool, str, list[tuple[str, str, dict[str, Any]]]]


def linear(*labels: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [("linear", label, {}) for label in labels]


def one(kind: str, label: str, **options: Any) -> list[tuple[str, str, dict[str, Any]]]:
    return [(kind, label, options)]


INTERCEPTS: list[Row] = [
    ("y ~ x", True, "y", linear("x")),
    ("y ~ 1 + x", True, "y", linear("x")),
    ("y ~ + x", True, "y", linear("x")),
    ("y ~ 0 + x", False, "y", linear("x")),
    ("y ~ x + 0", False, "y", linear("x")),
    ("y ~ x - 1", False, "y", linear("x")),
    ("y ~ -1 + x", False, "y", linear("x")),
    ("y ~ x - 1 + 1", True, "y", linear("x")),
    ("y ~ x - 0", True, "y", linear("x")),
    ("y ~ -0 + x", True, "y", linear("x")),
    ("y ~ (x - 1) + z", False, "y", linear("x", "z")),
    ("y ~ x + (z - 1)", False, "y", linear("x", "z")),
    ("y ~ x + (0 + z)", False, "y", linear("x", "z")),
    ("y ~ x - (1 + z) + z", False, "y", linear("x", "z")),
    ("y ~ x - (0 + z) + z", True, "y", linear("x", "z")),
    ("y ~ 1 - z + x", True, "y", linear("x")),
]

LINEAR: list[Row] = [
    ("y ~ x + z", True, "y", linear("x", "z")),
    ("y ~ x + x", True, "y", linear("x")),
    ("y ~ z:x + x", True, "y", linear("z:x", "x")),
    ("y ~ x:z + z:x", True, "y", linear("x:z")),
    ("y ~ x*z", True, "y", linear("x", "z", "x:z")),
    ("y ~ x*z*g", True, "y", linear("x", "z", "x:z", "g", "x:g", "z:g", "x:z:g")),
    ("y ~ (x + z):g", True, "y", linear("x:g", "z:g")),
    ("y ~ (x + z)**2", True, "y", linear("x", "z", "x:z")),
    ("y ~ (x + z + g)**2", True, "y", linear("x", "z", "g", "x:z", "x:g", "z:g")),
    ("y ~ (x + z)**10", True, "y", linear("x", "z", "x:z")),
    ("y ~ x*z - x", True, "y", linear("z", "x:z")),
    ("y ~ x*z - x:z", True, "y", linear("x", "z")),
    ("y ~ x/z", True, "y", linear("x", "x:z")),
    ("y ~ (x + z)/g", True, "y", linear("x", "z", "x:z:g")),
    ("y ~ x*z/g", True, "y", linear("x", "z", "x:z", "x:z:g")),
    ("y ~ x:z*g", True, "y", linear("x:z", "g", "x:z:g")),
    ("y ~ ((x + z)**2)**2", True, "y", linear("x", "z", "x:z")),
    ("y ~ (x + z)**2**3", True, "y", linear("x", "z", "x:z")),
    ("y ~ x - (z - x)", True, "y", linear("x")),
    ("y ~ x + (z - x)", True, "y", linear("x", "z")),
    ("y ~ x - s(x)", True, "y", linear("x")),
    ("y ~ x:x", True, "y", linear("x")),
    ('y ~ x + Q("x") + I(x) + (x)', True, "y", linear("x")),
    ('y ~ x:z + I(z):Q("x")', True, "y", linear("x:z")),
    ("y ~ I(x + z) + I(x+z)", True, "y", linear("I(x + z)")),
    ("y ~ C(g)", True, "y", linear("C(g)")),
    ("y ~ C(g):x", True, "y", linear("C(g):x")),
    ("y ~ s + log + C", True, "y", linear("s", "log", "C")),
    ("y ~ __class__ + _ + print", True, "y", linear("__class__", "_", "print")),
]

QUOTED: list[Row] = [
    ('y ~ Q("a b")', True, "y", linear('Q("a b")')),
    ("y ~ Q('a b')", True, "y", linear('Q("a b")')),
    ('y ~ Q("x")', True, "y", linear("x")),
    ('y ~ Q("class")', True, "y", linear('Q("class")')),
    ('y ~ Q("a.b"):x', True, "y", linear('Q("a.b"):x')),
    (r'y ~ Q("say \"hi\"")', True, "y", linear(r'Q("say \"hi\"")')),
    ("y ~ Q('say \"hi\"')", True, "y", linear(r'Q("say \"hi\"")')),
    ('y ~ Q("it\'s")', True, "y", linear('Q("it\'s")')),
    (r'y ~ Q("a\\b")', True, "y", linear(r'Q("a\\b")')),
    ("y ~ Q('''a'b''')", True, "y", linear('Q("a\'b")')),
    ('y ~ Q("""a"b""")', True, "y", linear(r'Q("a\"b")')),
    ('y ~ Q(u"a b") + Q(r"a\\b")', True, "y", linear('Q("a b")', r'Q("a\\b")')),
    (r'y ~ Q("\d")', True, "y", linear(r'Q("\\d")')),
    (r'y ~ Q("a\nb")', True, "y", linear(r'Q("a\nb")')),
    ('y ~ Q("a\tb")', True, "y", linear(r'Q("a\tb")')),
    ('y ~ Q("a\u00a0b")', True, "y", linear(r'Q("a\xa0b")')),
    ('y ~ Q("nan") + Q("inf")', True, "y", linear('Q("nan")', 'Q("inf")')),
    ('y ~ s(Q("a b")) + s(Q("ab"))', True, "y", [*one("s", 's(Q("a b"))'), *one("s", "s(ab)")]),
    ('y ~ Q("a ~ (b") + x', True, "y", linear('Q("a ~ (b")', "x")),
    ('y ~ C(Q("a b"))', True, "y", linear('C(Q("a b"))')),
    ('y ~ log(Q("a b"))', True, "y", linear('log(Q("a b"))')),
    ('y ~ s(Q("a b"), k=5)', True, "y", one("s", 's(Q("a b"))', k=5)),
    ('y ~ afm(Q("a b"), x, k={"a b": 5})', True, "y",
     one("ahofm", 'afm(Q("a b"), x)', D=2, k={"a b": 5})),
]  # fmt: skip

FUNCTIONS: list[Row] = [
    ("y ~ log(x) + log1p(x)", True, "y", linear("log(x)", "log1p(x)")),
    ("y ~ exp(x) + sqrt(x) + abs(x)", True, "y", linear("exp(x)", "sqrt(x)", "abs(x)")),
    ("y ~ scale(x) + center(z)", True, "y", linear("scale(x)", "center(z)")),
    ("y ~ poly(x, 3)", True, "y", linear("poly(x, 3)")),
    ("y ~ poly(log(x), 2):z", True, "y", linear("poly(log(x), 2):z")),
    ("y ~ log(x + 1)", True, "y", linear("log(x + 1)")),
    ("y ~ log(I(x + 1))", True, "y", linear("log(x + 1)")),
    ("y ~ I(x)", True, "y", linear("x")),
    ("y ~ I(x + z*g)", True, "y", linear("I(x + z * g)")),
    ("y ~ I((x + z)*g)", True, "y", linear("I((x + z) * g)")),
    ("y ~ I(x - z - g)", True, "y", linear("I(x - z - g)")),
    ("y ~ I(x - (z - g))", True, "y", linear("I(x - (z - g))")),
    ("y ~ I(x/z*g)", True, "y", linear("I(x / z * g)")),
    ("y ~ I(x/(z*g))", True, "y", linear("I(x / (z * g))")),
    ("y ~ I(x**z**g)", True, "y", linear("I(x ** z ** g)")),
    ("y ~ I((x**z)**g)", True, "y", linear("I((x ** z) ** g)")),
    ("y ~ I(x*-z)", True, "y", linear("I(x * -z)")),
    ("y ~ I(-x)", True, "y", linear("I(-x)")),
    ("y ~ I(-x**2)", True, "y", linear("I(-x ** 2)")),
    ("y ~ I((-x)**2)", True, "y", linear("I((-x) ** 2)")),
    ("y ~ I(x*0.123456789)", True, "y", linear("I(x * 0.123456789)")),
    ("y ~ I(x*100) + I(x*1e-20)", True, "y", linear("I(x * 100)", "I(x * 1e-20)")),
    ("y ~ I(x * log(2))", True, "y", linear("I(x * log(2))")),
    ("y ~ I(+x)", True, "y", linear("x")),
    ("y ~ I(C(g))", True, "y", linear("C(g)")),
]

RESPONSES: list[Row] = [
    ("(y) ~ x", True, "y", linear("x")),
    ("log(y) ~ x", True, "log(y)", linear("x")),
    ("I(y/100) ~ x", True, "I(y / 100)", linear("x")),
    ('Q("my y") ~ x', True, 'Q("my y")', linear("x")),
    ('log1p(Q("my y")) ~ x', True, 'log1p(Q("my y"))', linear("x")),
]

SMOOTHS: list[Row] = [
    ("y ~ s(x)", True, "y", one("s", "s(x)")),
    ("y ~ s(x,)", True, "y", one("s", "s(x)")),
    ("y ~ (s(x))", True, "y", one("s", "s(x)")),
    ("y ~ s(x, k=10)", True, "y", one("s", "s(x)", k=10)),
    ("y ~ s(x, df=4.5)", True, "y", one("s", "s(x)", df=4.5)),
    ('y ~ s(x, bs="cp", knots=(0, 24))', True, "y", one("s", "s(x)", bs="cp", knots=(0, 24))),
    ("y ~ s(x, knots=[-1.5, 1])", True, "y", one("s", "s(x)", knots=(-1.5, 1))),
    ('y ~ s(x, knots="quantile")', True, "y", one("s", "s(x)", knots="quantile")),
    ("y ~ s(x, bs=ps, sp=0)", True, "y", one("s", "s(x)", bs="ps", sp=0)),
    ('y ~ s(g, bs="re")', True, "y", one("s", "s(g)", bs="re")),
    ("y ~ s(C(g))", True, "y", one("s", "s(C(g))")),
    ("y ~ s(log(x))", True, "y", one("s", "s(log(x))")),
    ("y ~ s(I(x/100), k=5)", True, "y", one("s", "s(I(x / 100))", k=5)),
    ("y ~ s(x) - 1 + x", False, "y", [*one("s", "s(x)"), *linear("x")]),
]

MACHINES: list[Row] = [
    ("y ~ s(x) + (1 | g)", True, "y", [*one("s", "s(x)"), *one("s", "s(g)", bs="re")]),
    ("y ~ (x | g)", True, "y", [*one("s", "s(g)", bs="re"), *one("s", "s(C(g), x)", bs="re")]),
    ("y ~ (0 + x | g) + (1 + x || Q('a b'))", True, "y",
     [*one("s", "s(C(g), x)", bs="re"), *one("s", 's(Q("a b"))', bs="re"),
      *one("s", 's(C(Q("a b")), x)', bs="re")]),
    ("y ~ (1 | g) + (x | g) - (1 | g)", True, "y", one("s", "s(C(g), x)", bs="re")),
    ("y ~ s(x, by=g, id=1)", True, "y", one("s", "s(x):g", by=column("g"), id=1)),
    ("y ~ te(x, z)", True, "y", one("te", "te(x, z)", pure=False)),
    ("y ~ ti(z, x, df=16)", True, "y", one("te", "ti(z, x)", pure=True, df=16)),
    ("y ~ te(x, z, k=[5, None])", True, "y", one("te", "te(x, z)", pure=False, k=(5, None))),
    ("y ~ te(x, z, k={'z': 4}, sp={'z': 1, 'x': 2})", True, "y",
     one("te", "te(x, z)", pure=False, k=(None, 4), sp=(2, 1))),
    ("y ~ te(x, z, knots=(0, 1), bs='ps')", True, "y",
     one("te", "te(x, z)", pure=False, knots=(0, 1), bs="ps")),
    ("y ~ te(x, z, knots=('even', (0, 1)))", True, "y",
     one("te", "te(x, z)", pure=False, knots=("even", (0, 1)))),
    ("y ~ te(., k=3)", True, "y", one("te", 'te(x, z, g, Q("a b"))', pure=False, k=3)),
    ("y ~ afm(x, z)", True, "y", one("ahofm", "afm(x, z)", D=2)),
    ("y ~ fm(x, z, F=3, sp=0.5)", True, "y", one("hofm", "fm(x, z)", D=2, F=3, sp=0.5)),
    ("y ~ ahofm(x, z, g)", True, "y", one("ahofm", "ahofm(x, z, g)")),
    ("y ~ ahofm(x, z, D=2, F=5)", True, "y", one("ahofm", "ahofm(x, z)", D=2, F=5)),
    ("y ~ ahofm(x, z, g, D=3, F=(10, 5))", True, "y",
     one("ahofm", "ahofm(x, z, g)", D=3, F=(10, 5))),
    ("y ~ ahofm(x, z, df=15)", True, "y", one("ahofm", "ahofm(x, z)", df=15)),
    ("y ~ ahofm(x, z, g, D=3, df=(15, 8, 5))", True, "y",
     one("ahofm", "ahofm(x, z, g)", D=3, df=(15, 8, 5))),
    ("y ~ ahofm(x, z, g, D=3, main=False, df=(8, 5))", True, "y",
     one("ahofm", "ahofm(x, z, g)", D=3, main=False, df=(8, 5))),
    ('y ~ ahofm(x, z, df={"x": 3, z: (4, 5)})', True, "y",
     one("ahofm", "ahofm(x, z)", df={"x": 3, "z": (4, 5)})),
    ('y ~ ahofm(log(x), z, k={"log(x)": 7})', True, "y",
     one("ahofm", "ahofm(log(x), z)", k={"log(x)": 7})),
    ("y ~ ahofm(x, z, k=9, center=True)", True, "y",
     one("ahofm", "ahofm(x, z)", k=9, center=True)),
    ('y ~ ahofm(x, z, knots={"x": (0, 24), "z": "even"})', True, "y",
     one("ahofm", "ahofm(x, z)", knots={"x": (0, 24), "z": "even"})),
    ("y ~ ahofm(x, z, g, orders=(2, 3))", True, "y",
     one("ahofm", "ahofm(x, z, g)", orders=(2, 3))),
    ("y ~ hofm(x, z, g, orders=3, main=False)", True, "y",
     one("hofm", "hofm(x, z, g)", orders=3, main=False)),
    ("y ~ ahofm(x, z, g, orders=(3, 2), F=(10, 5))", True, "y",
     one("ahofm", "ahofm(x, z, g)", orders=(2, 3), F=(5, 10))),
    ("y ~ ahofm(x, z, g, orders=(3, 2), df=(9, 7, 5))", True, "y",
     one("ahofm", "ahofm(x, z, g)", orders=(2, 3), df=(9, 5, 7))),
    ("y ~ ahofm(x, z, g, orders=(3, 2), main=False, df={x: (7, 5), z: 4})", True, "y",
     one("ahofm", "ahofm(x, z, g)", orders=(2, 3), main=False, df={"x": (5, 7), "z": 4})),
    ("y ~ ahofm(x, z, g, orders=3) + afm(g, z, x)", True, "y",
     [*one("ahofm", "ahofm(x, z, g)", orders=3), *one("ahofm", "afm(g, z, x)", D=2)]),
    ("y ~ afm(x, z) + fm(x, z)", True, "y",
     [*one("ahofm", "afm(x, z)", D=2), *one("hofm", "fm(x, z)", D=2)]),
    ("y ~ hofm(C(g), x)", True, "y", one("hofm", "hofm(C(g), x)")),
    ("y ~ x + offset(log(z))", True, "y", [*linear("x"), *one("offset", "offset(log(z))")]),
]  # fmt: skip

DOTS: list[Row] = [
    ("y ~ .", True, "y", linear("x", "z", "g", 'Q("a b")')),
    ("y~.-1", False, "y", linear("x", "z", "g", 'Q("a b")')),
    ("log(y) ~ .", True, "log(y)", linear("x", "z", "g", 'Q("a b")')),
    ("I(y/x) ~ .", True, "I(y / x)", linear("z", "g", 'Q("a b")')),
    ('Q("a b") ~ .', True, 'Q("a b")', linear("y", "x", "z", "g")),
    ("y ~ . - x", True, "y", linear("z", "g", 'Q("a b")')),
    ('y ~ . - Q("a b")', True, "y", linear("x", "z", "g")),
    ("y ~ . - (x + z)", True, "y", linear("g", 'Q("a b")')),
    ("y ~ . - x - z + s(x)", True, "y", [*linear("g", 'Q("a b")'), *one("s", "s(x)")]),
    ("y ~ (.)**2 - (z + g)", True, "y", linear("x", 'Q("a b")', 'x:Q("a b")')),
    ('y ~ (. - g - Q("a b"))**2', True, "y", linear("x", "z", "x:z")),
    ('y ~ (.)**2 - x:z - g - Q("a b")', True, "y", linear("x", "z")),
    ("y ~ . - x:z", True, "y", linear("x", "z", "g", 'Q("a b")')),
    ("y ~ . - (x - z)", True, "y", linear("z", "g", 'Q("a b")')),
    ("y ~ . - (x + log(z))", True, "y", linear("z", "g", 'Q("a b")')),
    ("y ~ ahofm(.) - (x - z) - log(g) - s(z)", True, "y", one("ahofm", 'ahofm(z, g, Q("a b"))')),
    ("y ~ ahofm(.) - x*z", True, "y", one("ahofm", 'ahofm(g, Q("a b"))')),
    ("y ~ ahofm(.) - x/z", True, "y", one("ahofm", 'ahofm(z, g, Q("a b"))')),
    ('y ~ .**2 - g - Q("a b")', True, "y", linear("x", "z", "x:z")),
    ("y ~ . + x:z", True, "y", linear("x", "z", "g", 'Q("a b")', "x:z")),
    ("y ~ ahofm(., D=3)", True, "y", one("ahofm", 'ahofm(x, z, g, Q("a b"))', D=3)),
    ("y ~ ahofm(.) - g + C(g)", True, "y",
     [*one("ahofm", 'ahofm(x, z, Q("a b"))'), *linear("C(g)")]),
    ('y ~ afm(Q("("), .) - g', True, "y",
     one("ahofm", 'afm(Q("("), x, z, Q("a b"))', D=2)),
    ('y ~ afm(Q(")"), .) - g', True, "y",
     one("ahofm", 'afm(Q(")"), x, z, Q("a b"))', D=2)),
    ("y ~ s(.)", True, "y",
     [*one("s", "s(x)"), *one("s", "s(z)"), *one("s", "s(g)"), *one("s", 's(Q("a b"))')]),
    ("y ~ s(., k=8) - g - Q('a b')", True, "y", [*one("s", "s(x)", k=8), *one("s", "s(z)", k=8)]),
    ("y ~ s( . ,k=8) - x*z + x - 1", False, "y",
     [*one("s", "s(g)", k=8), *one("s", 's(Q("a b"))', k=8), *linear("x")]),
    ("y ~ s(.) - g - z - Q('a b') + s(z, k=3)", True, "y",
     [*one("s", "s(x)"), *one("s", "s(z)", k=3)]),
    ('y ~ s(.) + s(x)', True, "y",
     [*one("s", "s(x)"), *one("s", "s(z)"), *one("s", "s(g)"), *one("s", 's(Q("a b"))')]),
]  # fmt: skip

SPELLINGS: list[Row] = [
    ("y~s(x,k=10)+z", True, "y", [*one("s", "s(x)", k=10), *linear("z")]),
    ("y ~ s( x , k = 10 )", True, "y", one("s", "s(x)", k=10)),
    ("y ~\n  s(x)\n  + z\n", True, "y", [*one("s", "s(x)"), *linear("z")]),
    ("y ~ ahofm(\r\n\t.,\r\n\tD=2\r\n) - g", True, "y",
     one("ahofm", 'ahofm(x, z, Q("a b"))', D=2)),
    ("   y ~ s(x) + z", True, "y", [*one("s", "s(x)"), *linear("z")]),
    ("\n    y ~ . - x\n    - z\n", True, "y", linear("g", 'Q("a b")')),
    ("\ufeffy\u00a0~\u2003x\u200b+ z\u2028", True, "y", linear("x", "z")),
    ("µ ~ s(µm) + µ2", True, "µ", [*one("s", "s(µm)"), *linear("µ2")]),
    ("y ~ afm(µ, ﬁ, df={µ: 3})", True, "y", one("ahofm", "afm(µ, ﬁ)", D=2, df={"µ": 3})),
    ("y ~ log(größe) + 日本:x", True, "y", linear("log(größe)", "日本:x")),
]  # fmt: skip

TABLE = [
    *INTERCEPTS, *LINEAR, *QUOTED, *FUNCTIONS, *RESPONSES, *SMOOTHS, *MACHINES, *DOTS, *SPELLINGS
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "intercept", "response", "terms"), TABLE, ids=[row[0] for row in TABLE]
)
def test_formula_becomes_intercept_response_and_terms(
    text: str, intercept: bool, response: str, terms: list[tuple[str, str, dict[str, Any]]]
) -> None:
    formula = parse_formula(text, COLUMNS)
    assert [(term.kind, term.label, term.options) for term in formula.terms] == terms
    assert str(formula.response) == response
    assert formula.intercept is intercept


@pytest.mark.parametrize(
    "name",
    ["x", "a b", "class", "None", "a.b", "1st", "it's", 'say "hi"', "a\\b", "a\\", "a)", "(a",
     "~", ".", "µ", "ﬁ", "日本", "\t", "a\nb", "inf", "nan", "Infinity", "__class__", "a\u00a0b", "a\r\nb", "a\x00b", "\ud800", "²", "٣", "e\u0301"],
)  # fmt: skip
def test_dot_keeps_a_columns_name_as_it_is(name: str) -> None:
    assert parse_formula("response ~ .", ["response", name]).columns() == [name]


@pytest.mark.parametrize(
    ("response", "name"),
    [
        ("y", "y"),
        ("sqrt(y)", "y"),
        ('Q("my y")', "my y"),
        (r'Q("a\"b")', 'a"b'),
        (r"Q('it\'s')", "it's"),
        ('Q("""my y""")', "my y"),
        ('Q(u"my y")', "my y"),
        (r'Q("my\x20y")', "my y"),
        ('log(Q("log"))', "log"),
    ],
)
def test_dot_leaves_the_response_out(response: str, name: str) -> None:
    assert parse_formula(f"{response} ~ .", [name, "x"]).columns() == ["x"]


def test_columns_that_are_no_text_go_by_their_text() -> None:
    formula = parse_formula("y ~ . - Q('2')", ["y", 0, 1.5, 2, ("a", "b")])
    assert formula.columns() == ["0", "1.5", "('a', 'b')"]


def test_label_of_many_features_is_shortened_but_the_features_are_not() -> None:
    names = [f"x{number}" for number in range(1, 8)]
    term = parse_formula("y ~ ahofm(.)", ["y", *names]).terms[0]
    assert term.label == "ahofm(x1, x2, ..., x7)"
    assert [str(feature) for feature in term.features] == names


def test_columns_of_a_formula_come_once_and_without_the_response() -> None:
    formula = parse_formula('log(y) ~ s(z) + I(x/z) + C(g):x + Q("a b")')
    assert formula.columns() == ["z", "x", "g", "a b"]


@pytest.mark.parametrize("text", [row[0] for row in DOTS])
def test_text_of_a_formula_parses_back_to_it_without_the_columns(text: str) -> None:
    formula = parse_formula(text, COLUMNS)
    assert parse_formula(formula.text) == formula


def test_text_of_a_formula_has_its_dots_written_out() -> None:
    formula = parse_formula("y ~ ahofm(., D=2) + s(x)", ["y", "x", "a b"])
    assert formula.text == 'y ~ ahofm(x, Q("a b"), D=2) + s(x)'
    assert parse_formula(formula.text) == formula
