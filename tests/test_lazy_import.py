"""`import ahofm_keras` is quick: what needs TensorFlow and Keras is imported when it is asked for."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import ahofm_keras as ak
from ahofm_keras import _serializable

ROOT = Path(__file__).parent.parent
HEAVY = ("tensorflow", "keras", "numba", "matplotlib")


def run(code: str, **variables: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def loaded(code: str, **variables: str) -> str:
    """Which slow libraries some code has imported."""
    return run(
        f"{code}\nimport sys; print([name for name in {HEAVY} if name in sys.modules])", **variables
    )


@pytest.mark.parametrize(
    "code",
    [
        "import ahofm_keras; ahofm_keras.datasets.simulate_toy(100, 1)",
        "import ahofm_keras as ak; ak.parse_formula('y ~ s(x) + ahofm(x, z)'); ak.__version__; dir(ak)",
        "from ahofm_keras import errors, DataError",
        "import ahofm_keras; hasattr(ahofm_keras, 'nothing')",
    ],
)
def test_what_needs_no_model_imports_no_keras(code: str) -> None:
    assert loaded(code) == "[]"


def test_reading_a_data_set_imports_no_keras(tmp_path: Path) -> None:
    code = "import ahofm_keras\ntry: ahofm_keras.datasets.load('airfoil')\nexcept ahofm_keras.DataError: pass"
    (tmp_path / "airfoil.csv").write_text("a,b\n1,2\n")
    assert loaded(code, AHOFM_DATA=str(tmp_path)) == "[]"


def test_a_small_model_imports_no_numba() -> None:
    code = """
import numpy as np, ahofm_keras as ak
x = np.linspace(0, 1, 200)
data = {"x": x, "z": x[::-1] ** 2, "y": np.sin(x) + np.cos(40 * x)}
model = ak.AdditiveModel("y ~ s(x) + ti(x, z)", data)
model.fit(data, verbose=0)
model.predict({"x": 0.5, "z": 0.2})
"""
    assert "numba" not in loaded(code)  # Keras itself imports matplotlib, where it is installed


def test_every_public_name_is_there() -> None:
    assert set(dir(ak)) == {*ak.__all__, "datasets", "families"}
    for name in dir(ak):
        assert getattr(ak, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ak.nothing  # noqa: B018


def test_the_table_of_names_is_that_of_type_checkers() -> None:
    tree = ast.parse((ROOT / "ahofm_keras" / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [(n.module.partition(".")[2], [a.name for a in n.names]) for n in block.body]  # type: ignore[attr-defined]
    assert [names for module, names in imports if not module] == [["datasets"], ["families"]]
    table = {module: names for module, names in imports if module}
    assert table == {module: list(names) for module, names in ak._NAMES.items()}
    eager = {"AhofmError", "AhofmWarning", "DataError", "FormulaError", "NotFittedError", "__version__"}
    assert set(ak.__all__) == {*eager, *ak._HOMES}


def test_modules_are_attributes() -> None:
    assert run("import ahofm_keras as ak; print(ak.plotting.__name__)") == "ahofm_keras.plotting"


def test_an_import_that_fails_inside_a_module_says_so(tmp_path: Path) -> None:
    code = "import sys; sys.modules['patsy'] = None; import ahofm_keras as ak\n"
    code += "try: ak.parse_formula\nexcept ModuleNotFoundError as error: print(error.name)"
    assert run(code) == "patsy"


def test_all_classes_have_a_stand_in() -> None:
    getattr(ak, "AdditiveModel")  # noqa: B009
    known = {name for name in keras.saving.get_custom_objects() if name.startswith("ahofm_keras>")}
    assert known == {f"ahofm_keras>{name}" for name in _serializable.CLASSES}


@pytest.mark.parametrize(
    "imports", ["import ahofm_keras, tensorflow, keras", "import keras, ahofm_keras"]
)
def test_keras_loads_a_file_after_the_import_of_the_package_alone(imports: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.uniform(size=100), "z": rng.uniform(size=100)})
    data["y"] = data.x * data.z + 0.1 * rng.normal(size=100)
    model = ak.AdditiveModel("y ~ ahofm(x, z, F=1)", data)
    model.fit(data, verbose=0, solver="bcd")
    model.save(tmp_path / "model.keras")
    code = f"""
{imports}
model = keras.models.load_model({str(tmp_path / "model.keras")!r})
print(type(model) is ahofm_keras.AdditiveModel, repr(float(model.predict({{"x": 0.3, "z": 0.6}})[0])))
"""
    same, predicted = run(code).split()
    assert same == "True"
    np.testing.assert_allclose(float(predicted), model.predict({"x": 0.3, "z": 0.6})[0], rtol=1e-6)


def test_keras_reads_a_layer_of_the_package(tmp_path: Path) -> None:
    layer = ak.layers.Linear(0, 2, name="line")
    path = tmp_path / "layer.json"
    path.write_text(keras.saving.serialize_keras_object(layer).__repr__())
    code = f"""
import ahofm_keras, keras
layer = keras.saving.deserialize_keras_object(eval(open({str(path)!r}).read()))
print(type(layer).__module__, layer.name)
"""
    assert run(code) == "ahofm_keras.layers.linear line"


def test_errors_travel_between_processes() -> None:
    again = pickle.loads(pickle.dumps(ak.DataError("gone")))
    assert (type(again), str(again)) == (ak.DataError, "gone")
