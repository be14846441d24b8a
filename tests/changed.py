"""Print the tests of what has changed since the main branch, for `make changed`.

A module `ahofm_keras/warp.py` has the tests `tests/test_warp.py`, a package `ahofm_keras/decomposition/` the
folder `tests/decomposition`; both have the examples of their docstrings. Where nothing else is found, the
test of the imports is left.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = "tests/test_architecture.py"


def find_tests(changed: Iterable[str]) -> list[str]:
    """Paths to hand to pytest, those that exist.

    Args:
        changed: paths of changed files, from the root of the project.
    """
    found = {ALWAYS}
    for path in map(PurePosixPath, changed):
        head = path.parts[0]
        if head == "ahofm_keras" and path.suffix == ".py" and len(path.parts) > 1:
            module = PurePosixPath(path.parts[1]).stem
            found |= {f"tests/{module}", f"tests/test_{module}.py", str(path)}
        elif head == "tests" and path.name.startswith("test_"):
            found.add(str(path))
        elif head == "tests":  # fixtures, helpers: the folder that they are for
            found.add(str(path.parent) if len(path.parts) > 2 else ALWAYS)
        elif head in ("docs", "examples"):
            found.add(f"tests/{head}")
        elif path.name == "README.md":
            found.add("tests/test_readme.py")
    return sorted(name for name in found if (ROOT / name).exists())


def changed_files() -> list[str]:
    """Files that differ from where the branch left `main`, and those that git does not track yet."""
    base = _git("merge-base", "HEAD", "main")[:1] or ["HEAD"]
    return _git("diff", "--name-only", "--diff-filter=d", base[0]) + _git(
        "ls-files", "--others", "--exclude-standard"
    )


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if not done.returncode else []


if __name__ == "__main__":
    sys.stdout.write(" ".join(find_tests(changed_files())))
