"""Nothing of TensorFlow's log reaches stderr, unless the user asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ahofm_keras._quiet import is_wanted

ROOT = Path(__file__).parent.parent

WORK = """
import os
import numpy as np
import pandas as pd
import ahofm_keras as ak
import keras

print(os.environ["TF_CPP_MIN_LOG_LEVEL"], "TF_ENABLE_ONEDNN_OPTS" in os.environ)
rng = np.random.default_rng(0)
data = pd.DataFrame({"x": rng.uniform(size=200), "z": rng.uniform(size=200)})
data["y"] = data.x * data.z + 0.1 * rng.normal(size=200)
for solver in ("variational", "adam"):
    model = ak.AdditiveModel("y ~ ahofm(x, z, F=1)", data)
    model.fit(data, solver=solver, verbose=0)
model.predict(data)
model.evaluate(data)
model.save("model.keras")
keras.models.load_model("model.keras").predict(data, interval=0.9)
model.export("served")
"""


def run(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process in which nobody has set what TensorFlow reads."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    variables = {**clean, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_whole_session_writes_nothing_to_stderr(tmp_path: Path) -> None:
    done = run(WORK, tmp_path)
    assert done.stderr == ""
    assert done.stdout.split() == ["3", "False"]


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    code = "import os, ahofm_keras.model; print(os.environ['TF_CPP_MIN_LOG_LEVEL'])"
    assert run(code, tmp_path, TF_CPP_MIN_LOG_LEVEL="2").stdout.split() == ["2"]
    late = "import tensorflow, ahofm_keras.model, os; print('TF_CPP_MIN_LOG_LEVEL' in os.environ)"
    assert run(late, tmp_path).stdout.split() == ["False"]


def test_lines_of_others_are_shown_after_the_import(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text(
        "import os; os.write(2, b'mine\\n'); raise ImportError('gone')"
    )
    code = "import sys; sys.path.insert(0, '.'); import ahofm_keras; ahofm_keras.AdditiveModel"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(code, tmp_path)
    assert "mine\n" in caught.value.stderr
    assert "ImportError: gone" in caught.value.stderr


@pytest.mark.parametrize("first", ["tensorflow", "ahofm_keras.data"])
def test_quiet_whatever_is_imported_first(tmp_path: Path, first: str) -> None:
    done = run(f"import ahofm_keras, {first}, ahofm_keras.model", tmp_path)
    assert done.stderr == ""


INFO = b"I0000 00:00:1794959697.549740    7294 cudart_stub.cc:31] Could not find cuda drivers"
ERROR = b"E0000 00:00:1794962076.195766    1327 cuda_platform.cc:52] failed call to cuInit"
OLDER = b"2025-01-31 12:00:00.123456: W tensorflow/core/util/port.cc:153] oneDNN custom operations"
HEADER = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"


@pytest.mark.parametrize(
    ("line", "shown_up_to"),
    [(INFO, 0), (OLDER, 1), (ERROR, 2), (HEADER, 0), (b"Indeed", 3), (b"WARNING: mine", 3), (b"", 3),
     (b"E = mc2", 3), (b"2025-01-31 12:00:00 INFO mine", 3)],
)  # fmt: skip
def test_lines_are_wanted_up_to_their_level(line: bytes, shown_up_to: int) -> None:
    wanted = [level for level in range(4) if is_wanted(line, str(level))]
    assert wanted == list(range(shown_up_to + 1))


def test_a_level_that_is_no_number_hides_nothing() -> None:
    assert is_wanted(INFO, "quiet")
