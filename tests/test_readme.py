"""The README's code runs, and its error message is the one that the package gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import ahofm_keras as ak
from tests.docs.pages import ROOT, read_examples, read_pieces, run_example

README = ROOT / "README.md"


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for example in read_examples(README):
        run_example(example, README, namespace)
    assert (tmp_path / "model.keras").is_file()
    assert (tmp_path / "serving" / "1" / "saved_model.pb").is_file()


def test_the_error_message_is_the_packages() -> None:
    plain = [piece.text for piece in read_pieces(README) if piece.kind in ("", "text")]
    (shown,) = [text for text in plain if text.startswith("FormulaError")]
    with pytest.raises(ak.FormulaError) as caught:
        ak.parse_formula("y ~ ahofm(x1, x2, x3, D=4)")
    assert f"FormulaError: {caught.value}\n" == shown
