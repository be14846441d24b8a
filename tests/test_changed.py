"""`make changed` finds the tests of what has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changed import ALWAYS, find_tests


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ahofm_keras/warp.py", {"tests/test_warp.py", "ahofm_keras/warp.py"}),
        ("ahofm_keras/solvers/gram.py", {"tests/solvers", "ahofm_keras/solvers/gram.py"}),
        ("tests/test_warp.py", {"tests/test_warp.py"}),
        ("tests/solvers/conftest.py", {"tests/solvers"}),
        ("tests/samples.py", set()),
        ("docs/reading.md", {"tests/docs"}),
        ("examples/gallery/air.py", {"tests/examples"}),
        ("README.md", {"tests/test_readme.py"}),
        ("pyproject.toml", set()),
        ("ahofm_keras/gone.py", set()),
    ],
)
def test_tests_of_a_changed_file(path: str, expected: set[str]) -> None:
    root = Path(__file__).parent.parent
    present = {name for name in expected if (root / name).exists()}
    assert present == expected
    assert set(find_tests([path])) == expected | {ALWAYS}
