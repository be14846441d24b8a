"""The README's code runs, and its error message is the one that the package gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ahofm_keras as ak

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.split(r"^```", README, flags=re.MULTILINE)[1::2]
    return [text.partition("\n")[2] for text in fenced if text.partition("\n")[0] == language]


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "model.keras").is_file()
    assert (tmp_path / "serving" / "1" / "saved_model.pb").is_file()


def test_the_error_message_is_the_packages() -> None:
    (shown,) = [block for block in blocks("") if block.startswith("FormulaError")]
    with pytest.raises(ak.FormulaError) as caught:
        ak.parse_formula("y ~ ahofm(x1, x2, x3, D=4)")
    assert f"FormulaError: {caught.value}\n" == shown
