"""The paper's toy example against its definition, and its data sets from a folder and an archive."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

from ahofm_keras.datasets import TOY_SIZES, load, simulate_toy, sources
from ahofm_keras.datasets.catalogue import CATALOGUE
from ahofm_keras.datasets.loading import checksum
from ahofm_keras.errors import DataError
from tests.reference import cox_de_boor

NAMES = ["time", "lat", "lon", "rate"]


def clamped_knots(size: int) -> list[float]:
    inner = [place / (size - 3) for place in range(size - 2)]
    return [0.0] * 3 + inner + [1.0] * 3


def looped_mean(row: pd.Series, seed: int) -> float:
    """Sum over all triples of features of all products of their functions."""
    rng = np.random.default_rng(seed)
    total = 0.0
    for names in combinations(NAMES, 3):
        sizes = [TOY_SIZES[name] for name in names]
        tensor = rng.standard_normal(sizes)
        for place in np.ndindex(*sizes):
            product = tensor[place]
            for name, size, function in zip(names, sizes, place, strict=True):
                product *= cox_de_boor(row[name], clamped_knots(size), function, 3)
            total += product
    return total


def test_shape_and_range() -> None:
    assert TOY_SIZES == {"time": 4, "lat": 5, "lon": 7, "rate": 5}
    data = simulate_toy(rows=1000).data
    assert list(data.columns) == [*NAMES, "y"]
    assert data.shape == (1000, 5)
    features = data[NAMES]
    assert ((features >= 0) & (features <= 1)).all().all()
    np.testing.assert_allclose(features.mean(), 0.5, atol=0.05)
    np.testing.assert_allclose(features.std(), 12**-0.5, atol=0.02)
    assert len(simulate_toy().data) == 10_000


@pytest.mark.parametrize("seed", [0, 11])
def test_mean_is_the_sum_of_all_threeway_products(seed: int) -> None:
    simulation = simulate_toy(rows=6, seed=seed)
    found = simulation.mean(simulation.data)
    assert found.shape == (6,)
    for row in range(6):
        assert found[row] == pytest.approx(looped_mean(simulation.data.iloc[row], seed), abs=1e-10)


def test_mean_takes_any_frame_with_the_features_up_to_both_ends() -> None:
    mean = simulate_toy(rows=2).mean
    ends = pd.DataFrame({"rate": [0.0, 1.0], "lon": [0.0, 1.0], "time": [0.0, 1.0], "lat": [0.0, 1.0]})
    near = ends.clip(1e-9, 1 - 1e-9)
    np.testing.assert_allclose(mean(ends), mean(near), rtol=0, atol=1e-6)


def test_noise_is_gaussian_of_the_given_size() -> None:
    silent = simulate_toy(rows=50, noise=0.0)
    np.testing.assert_array_equal(silent.data["y"], silent.mean(silent.data))
    loud = simulate_toy(rows=5000, noise=0.7)
    error = loud.data["y"] - loud.mean(loud.data)
    assert error.std() == pytest.approx(0.7, rel=0.05)
    assert error.mean() == pytest.approx(0, abs=0.05)


def test_the_seed_decides_everything() -> None:
    first, again, other = (
        simulate_toy(rows=20, seed=3),
        simulate_toy(rows=20, seed=3),
        simulate_toy(20, seed=4),
    )
    pd.testing.assert_frame_equal(first.data, again.data)
    np.testing.assert_array_equal(first.mean(other.data), again.mean(other.data))
    assert not np.allclose(first.data["time"], other.data["time"])
    assert not np.allclose(first.mean(other.data), other.mean(other.data))


FIRST_YACHT = "-2.3 0.568 4.78 3.99 3.17 0.125 0.11 "


def make_frame(name: str, rows: int = 4) -> pd.DataFrame:
    """Some rows with the columns of a data set."""
    entry = CATALOGUE[name]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, len(entry.columns))), columns=list(entry.columns))
    texts = {"month": "mar", "day": "fri"}
    return frame.assign(**{column: text for column, text in texts.items() if column in frame})


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, pd.DataFrame], None]:
    """Let the catalogue expect these rows of a data set."""

    def expect(name: str, frame: pd.DataFrame) -> None:
        entry = replace(CATALOGUE[name], rows=len(frame), checksum=checksum(frame))
        monkeypatch.setitem(CATALOGUE, name, entry)

    return expect


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No copy, an empty cache, and an archive that does not exist. Returns the archive's folder."""
    monkeypatch.delenv("AHOFM_DATA", raising=False)
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setattr(keras.src.utils.file_utils.config, "keras_home", lambda: str(cache))
    archive = tmp_path / "archive"
    archive.mkdir()
    monkeypatch.setattr(sources, "_ADDRESS", archive.as_uri() + "/{number}_{name}.zip")
    return archive


def publish(archive: Path, name: str, content: bytes, folder: str = "") -> None:
    fetch = CATALOGUE[name].fetch
    with zipfile.ZipFile(archive / f"{fetch.number}_{fetch.name}.zip", "w") as file:
        file.writestr("readme.txt", "not this one")
        file.writestr(folder + fetch.member, content)


def test_the_catalogue_is_consistent() -> None:
    assert sorted(CATALOGUE) == "airfoil concrete diabetes energy forest_fires naval yacht".split()
    for name, entry in CATALOGUE.items():
        assert entry.columns[-len(entry.targets) :] == entry.targets, name
        assert len(set(entry.columns)) == len(entry.columns), name
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", column) for column in entry.columns), name
        assert re.fullmatch(r"[0-9a-f]{64}", entry.checksum), name
    assert "free_stream_velocity" in CATALOGUE["airfoil"].columns


def test_a_set_of_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short: Callable[[str, pd.DataFrame], None]
) -> None:
    frame = make_frame("energy")
    frame.to_csv(tmp_path / "energy.csv", index=False)
    monkeypatch.setenv("AHOFM_DATA", str(tmp_path))
    short("energy", frame)
    found = load("energy")
    assert found.target == "heating_load" == found.data.columns[-1]
    assert found.features == list(frame.columns[:8])
    pd.testing.assert_frame_equal(found.data, frame.drop(columns="cooling_load"))
    assert repr(found) == "<Dataset energy: 4 rows, 8 features -> heating_load>"
    cooling = load("energy", target="cooling_load")
    assert "heating_load" not in cooling.data
    pd.testing.assert_series_equal(cooling.data["cooling_load"], frame["cooling_load"])
    assert "Tsanas" in found.citation
    assert found.licence == "CC BY 4.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(age=f["age"] + 1e-6), "does not hold the values of Concrete"),
        (lambda f: f.iloc[::-1], "does not hold the values of Concrete"),
        (lambda f: f.iloc[:-1], "has 3 rows; Concrete Compressive Strength has 4"),
        (lambda f: f.drop(columns="water"), "has no column `water`"),
    ],
)
def test_a_copy_with_other_values_is_refused(
    change: Callable[[pd.DataFrame], pd.DataFrame], message: str, monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path, short: Callable[[str, pd.DataFrame], None],
) -> None:  # fmt: skip
    frame = make_frame("concrete")
    short("concrete", frame)
    change(frame).to_csv(tmp_path / "concrete.csv", index=False)
    monkeypatch.setenv("AHOFM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=message):
        load("concrete")


@pytest.mark.parametrize(
    "content",
    [b"", b"a,b\n1,2\n1,2,3,4\n", "é,b\n1,2\n".encode("latin-1")],
    ids=["empty", "ragged", "latin"],
)
def test_a_copy_that_is_no_table_is_named(
    content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "yacht.csv").write_bytes(content)
    monkeypatch.setenv("AHOFM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"yacht\.csv could not be read as a CSV file: "):
        load("yacht")


def test_a_folder_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)
    monkeypatch.setenv("AHOFM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"yacht\.csv could not be read .*Permission denied"):
        load("yacht")


def test_the_checksum_is_that_of_the_values() -> None:
    frame = pd.DataFrame({"a": [1.0, -0.0], "b": ["mar", "oct"]})
    same = pd.DataFrame({"other": [1, 0], "names": ["mar", "oct"]})
    expected = hashlib.sha256(b"1,mar\n0,oct").hexdigest()
    assert checksum(frame) == checksum(same) == expected
    assert checksum(frame.assign(a=[1 + 4e-14, 0.0])) == expected
    assert checksum(frame.assign(a=[1 + 1e-8, 0.0])) != expected


def test_unknown_names_are_corrected() -> None:
    with pytest.raises(DataError, match="Did you mean `forest_fires`"):
        load("Forest fire")
    with pytest.raises(DataError, match=r"Unknown data set `zzz`\. Known data sets: `airfoil`"):
        load("zzz")
    with pytest.raises(DataError, match=r"Unknown data set `\['yacht'\]`"):
        load(["yacht"])  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"`age` is no target of `yacht`. Targets: `residuary"):
        load("yacht", target="age")


def test_a_set_is_downloaded_once(
    no_network: Path, short: Callable[[str, pd.DataFrame], None], capsys: pytest.CaptureFixture[str]
) -> None:
    # As published: blanks at the end of a line, two between some numbers, an empty last line.
    content = f"{FIRST_YACHT}\n-5  0.5 4.7 4 3.1  0.45 62.42 \n\n".encode()
    publish(no_network, "yacht", content)
    values = [[-2.3, 0.568, 4.78, 3.99, 3.17, 0.125, 0.11], [-5, 0.5, 4.7, 4, 3.1, 0.45, 62.42]]
    frame = pd.DataFrame(values, columns=list(CATALOGUE["yacht"].columns))
    short("yacht", frame)
    pd.testing.assert_frame_equal(load("yacht").data, frame, check_dtype=False)
    for file in no_network.iterdir():
        file.unlink()
    pd.testing.assert_frame_equal(load("yacht").data, frame, check_dtype=False)


@pytest.mark.parametrize("name", ["airfoil", "naval", "forest_fires"])
def test_every_format_of_text(
    name: str, no_network: Path, short: Callable[[str, pd.DataFrame], None]
) -> None:
    frame = make_frame(name)
    texts = {
        "airfoil": frame.to_csv(sep="\t", header=False, index=False, lineterminator="\r\n"),
        "naval": "\n".join("   " + "   ".join(map(repr, row)) for row in frame.to_numpy().tolist()),
        "forest_fires": frame.set_axis([c.upper() for c in frame], axis=1).to_csv(index=False),
    }
    publish(no_network, name, texts[name].encode(), folder="UCI CBM Dataset/")
    short(name, frame)
    others = list(CATALOGUE[name].targets[1:])
    pd.testing.assert_frame_equal(load(name).data, frame.drop(columns=others), check_exact=False)


def test_sheets(
    no_network: Path, short: Callable[[str, pd.DataFrame], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sheet itself is pandas' matter; here its reader, its empty cells and the names."""
    frame = make_frame("energy")
    sheet = frame.set_axis([f"X{j}" for j in range(10)], axis=1).assign(empty=np.nan)
    sheet.loc[4] = np.nan
    asked = {}

    def read_excel(stream: io.BytesIO, engine: str) -> pd.DataFrame:
        asked["engine"], asked["content"] = engine, stream.read()
        return sheet

    monkeypatch.setattr(pd, "read_excel", read_excel)
    monkeypatch.setattr(sources, "import_module", lambda module: None)
    publish(no_network, "energy", b"a sheet")
    short("energy", frame)
    pd.testing.assert_frame_equal(load("energy").data, frame.drop(columns="cooling_load"))
    assert asked == {"engine": "openpyxl", "content": b"a sheet"}


def test_a_missing_reader_is_named(no_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(sources, "import_module", refuse)
    with pytest.raises(DataError, match=r"xlrd, to read Concrete_Data.xls, .*ahofm_keras\[data\]"):
        load("concrete")
    with pytest.raises(
        DataError, match="scikit-learn, which this data set comes with, is not installed"
    ):
        load("diabetes")


def test_offline_says_where_to_put_what(no_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="could not be downloaded") as caught:
        load("airfoil")
    for part in ("airfoil.csv", "frequency,angle_of_attack", "variable AHOFM_DATA", "/dataset/291/"):
        assert part in str(caught.value)
    monkeypatch.setenv("AHOFM_DATA", str(no_network))
    with pytest.raises(DataError, match=re.escape(f"in {no_network}, the folder that AHOFM_DATA names")):
        load("airfoil")


@pytest.mark.parametrize("damage", ["a page", "empty", "ragged", "bytes"])
def test_what_cannot_be_read_is_fetched_anew(
    no_network: Path, short: Callable[[str, pd.DataFrame], None], damage: str
) -> None:
    fetch = CATALOGUE["airfoil"].fetch
    archive = no_network / f"{fetch.number}_{fetch.name}.zip"
    contents = {"empty": b"", "ragged": b"1 2\n1 2 3 4\n", "bytes": b"1 2 3 4 5 6\n" * 500}
    publish(no_network, "airfoil", contents.get(damage, b""))
    if damage == "a page":
        archive.write_text("<html>come back later</html>")
    if damage == "bytes":
        whole = bytearray(archive.read_bytes())
        whole[len(whole) // 3] ^= 255
        archive.write_bytes(whole)
    with pytest.raises(
        DataError, match=r"downloaded as 291_\w+.zip cannot be read \(.*; it was removed"
    ):
        load("airfoil")
    frame = make_frame("airfoil")
    publish(no_network, "airfoil", frame.to_csv(sep="\t", header=False, index=False).encode())
    short("airfoil", frame)
    assert len(load("airfoil").data) == 4


def test_a_changed_file_is_noticed(no_network: Path) -> None:
    publish(no_network, "yacht", b"1 2 3\n")
    with pytest.raises(DataError, match="has 3 columns where 7 were expected"):
        load("yacht")


def test_diabetes_comes_with_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.delenv("AHOFM_DATA", raising=False)
    data = load("diabetes").data
    assert data.shape == (442, 11)
    assert data.iloc[0].tolist() == [59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87, 151]


@pytest.mark.parametrize("given", ["not/there", "~nobody_of_this_name/data", "file.csv"])
def test_a_folder_that_is_none_is_an_error(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.csv").write_text("a,b\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AHOFM_DATA", given)
    with pytest.raises(DataError, match=f"AHOFM_DATA names {re.escape(given)}, which is no folder"):
        load("airfoil")
