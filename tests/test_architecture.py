"""Who may import whom: the last column of the table in docs/architecture.md; files that others name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ahofm_keras as ak
from ahofm_keras.terms import TERMS
from tests.conftest import SLOW

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ahofm_keras"
EVERYWHERE = {"errors", "_version"}
OUTSIDE_THE_ROOMS = {"__init__", "_version"}


def allowed() -> dict[str, set[str]]:
    """Room -> rooms that it may import, from the table in the documentation."""
    table = {}
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        match = re.fullmatch(r"\| `(\w+)(?:\.py|/)` \|.*\| ([\w, ]*) ?\|", line)
        if match:
            table[match[1]] = set(filter(None, re.split(r"[, ]+", match[2])))
    above = list(table)[: list(table).index("model")]
    table["errors"] = set()
    table["model"] = set(above) - {"datasets"}
    return table


def rooms() -> list[str]:
    names = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()
    }
    return sorted(names - OUTSIDE_THE_ROOMS)


def imports(room: str) -> set[str]:
    path = PACKAGE / room
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            found |= {n.split(".")[1] for n in names if n.startswith("ahofm_keras.")}
    return found - {room}


def test_every_room_stands_in_the_table() -> None:
    assert rooms() == sorted(allowed())


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_what_it_may(room: str) -> None:
    assert imports(room) <= allowed()[room] | EVERYWHERE


def test_the_check_sees_imports() -> None:
    assert "formula" in imports("terms")
    assert "layers" in imports("model")


def names_in(file: Path) -> set[str]:
    """All names that a module imports, defines or reads."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.name.split(".")[-1])
    return found


def term_classes() -> set[str]:
    return {term.__name__ for term in TERMS.values()}


def test_nobody_outside_names_the_class_of_a_term() -> None:
    assert term_classes() >= {"SmoothTerm", "InteractionTerm"}
    for file in PACKAGE.rglob("*.py"):
        if "terms" not in file.relative_to(PACKAGE).parts[:1]:
            assert not names_in(file) & term_classes(), file


def test_the_check_sees_term_classes() -> None:
    assert "SmoothTerm" in names_in(ROOT / "tests" / "terms" / "common.py")


def test_slow_files_are_there() -> None:
    assert [name for name in SLOW if not (ROOT / "tests" / name).is_file()] == []
    assert sorted(SLOW) == SLOW


# A family's properties are asked, its name is for readers -------------------------------------------------


def compared_names(tree: ast.AST) -> list[str]:
    """Where the name of a family or of a link decides something: compared, or a key of a table."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            parts = [] if ast.unparse(node.value) == "LINKS" else [node.slice]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get":
            parts = node.args[:1]
        else:
            continue
        found += [ast.unparse(node) for part in parts if re.search(NAMED, ast.unparse(part))]
    return found


NAMED = r"famil\w*(\.name|\.link|\[.name.\])?$|'(gaussian|bernoulli|poisson|gamma)'$"


def test_nobody_outside_the_families_decides_by_their_names() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "families"]
    found = {
        path.name: names for path in files if (names := compared_names(ast.parse(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "model.family.name == 'gaussian'",
        "if check.family != name: pass",
        "x = WORDS[model.family.link]",
        "x = WORDS.get(family.name)",
        "x = {'a': 1}[model.family.name]",
        "y = name in ('poisson', 'x') or 'gamma' == name",
        "family.link in SOME",
    ],
)
def test_the_check_sees_names(code: str) -> None:
    assert compared_names(ast.parse(code))


def test_scripts_of_the_report_do_not_know_families() -> None:
    scripts = list((PACKAGE / "reporting" / "assets").glob("*.js"))
    assert scripts
    for path in scripts:
        assert not re.search(r"family\.(name|link) *[!=]=|\[contents\.family\.", path.read_text()), (
            path.name
        )


def test_no_public_function_hides_a_module() -> None:
    assert not {name for name in rooms() if callable(getattr(ak, name, None))}
