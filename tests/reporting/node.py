"""The page's arithmetic without a page: its scripts in node."""

from __future__ import annotations

import json
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

_SCRIPTS = ("arithmetic.js", "uncertainty.js", "outcome.js")
_FRAME = """
const contents = JSON.parse(require("fs").readFileSync(process.argv[2]));
const model = new Model(contents.arithmetic, contents.family.link);
const posterior = contents.posterior === null ? null : new Posterior(model, contents.posterior);
console.log(JSON.stringify(%s));
"""


class Node:
    """Runs expressions of `model` and `posterior`.

    Args:
        program: path of node.
    """

    def __init__(self, program: str) -> None:
        self.program = program
        assets = files("ahofm_keras.reporting") / "assets"
        self.scripts = "\n".join((assets / name).read_text("utf-8") for name in _SCRIPTS)

    def run(self, contents: dict[str, Any], expression: str) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            data, script = Path(folder) / "contents.json", Path(folder) / "script.js"
            data.write_text(json.dumps(contents))
            script.write_text(self.scripts + _FRAME % expression)
            done = subprocess.run(
                [self.program, str(script), str(data)], capture_output=True, text=True, timeout=60
            )
        assert not done.stderr, done.stderr
        return json.loads(done.stdout)
