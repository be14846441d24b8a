"""Compiled loops over rows against those in NumPy, and which of them a fit takes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahofm_keras.bands import read_band
from ahofm_keras.bases import Basis
from ahofm_keras.errors import AhofmWarning
from ahofm_keras.solvers import kernels as package
from ahofm_keras.solvers.chunks import count_chunks, count_cores
from ahofm_keras.solvers.gram import CellBasis
from ahofm_keras.solvers.kernels import Factors, Kernels, get_kernels, use_kernels
from ahofm_keras.solvers.kernels.numpy_kernels import NumpyKernels
from tests.solvers.conftest import KERNELS, make_engine, pair_frame
from tests.solvers.test_gram import BASES, lay_out

needs_numba = pytest.mark.skipif("numba" not in KERNELS, reason="numba is not installed")
NAMES = ["ps3 7 linear", "cp3 5", "re 6", "linear", "ps1 7 clip", "cp3 4", "ps3 7 atoms"]


@dataclass
class Member:
    """A feature of a group."""

    position: int
    posterior: Factors


def draw_members(bases: list[Basis], rank: int, random: bool, seed: int) -> list[Member]:
    rng = np.random.default_rng(seed)
    members = []
    for position, basis in enumerate(bases):
        size = rank * basis.size
        root = 0.5 * rng.normal(size=(size, size)) / np.sqrt(size)
        blocks = (root @ root.T).reshape(rank, basis.size, rank, basis.size)
        pairs = [blocks[f, :, g] for f in range(rank) for g in range(f, rank)]
        forms = read_band(np.stack([(pair + pair.T) / 2 for pair in pairs]), basis.width)
        forms = np.ascontiguousarray(forms.transpose(1, 2, 0))
        coefficients = 0.5 * rng.normal(size=(rank, basis.size))
        members.append(Member(position, Factors(coefficients, forms if random else None)))
    return members


@dataclass
class Group:
    """A factor group on some rows, all features in."""

    members: list[Member]
    bases: list[CellBasis]
    moments: Any
    rest: np.ndarray
    weight: np.ndarray

    def take_out(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        return self.moments.take_out(feature, self.members, self.bases, self.rest, self.weight)

    def put_in(self, feature: int) -> None:
        member = self.members[feature]
        self.moments.put_in(member.posterior, self.bases[member.position])

    def read(self) -> list[np.ndarray]:
        return [np.array(self.moments.total), np.array(self.moments.variance)]


def make_group(
    kernels: Kernels, order: int, rank: int, rows: int, random: bool, large: int = -1
) -> Group:
    """The same group for all kernels; one feature may be much larger than the others in some rows."""
    rng = np.random.default_rng([order, rank, rows, random])
    bases = [BASES[name] for name in NAMES]
    members = draw_members(bases, rank, random, seed=order)
    places = [rng.choice(lay_out(basis, "scattered"), rows) for basis in bases]
    if large >= 0:
        coefficients, forms = members[large].posterior
        members[large].posterior = Factors(1e7 * coefficients, None if forms is None else 1e14 * forms)
        assert bases[large].kind == "re"
        places[large] = np.where(np.arange(rows) % 3 == 0, places[large], -1)  # -1 has no function
    own = [kernels.read_basis(basis, at) for basis, at in zip(bases, places, strict=True)]
    moments = kernels.start_moments(order, rank, rows, random)
    weight = rng.uniform(0.2, 2, rows) * (rng.random(rows) < 0.9)
    group = Group(members, own, moments, rng.normal(size=rows), weight)
    for feature in range(len(members)):
        group.put_in(feature)
    return group


def assert_equal(found: Any, wanted: Any, rtol: float) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= rtol * np.abs(other).max()


@needs_numba
@pytest.mark.parametrize("random", [True, False], ids=["random", "fixed"])
@pytest.mark.parametrize("rows", [1, 64, 150])
@pytest.mark.parametrize("rank", [1, 2, 5, 9])  # less than a vector of factors or pairs, and more
@pytest.mark.parametrize("order", [2, 3, 4])
def test_compiled_loops_are_those_in_numpy(order: int, rank: int, rows: int, random: bool) -> None:
    groups = []
    for name in ("numba", "numpy"):
        with use_kernels(name):
            groups.append(make_group(get_kernels(), order, rank, rows, random))
    found, wanted = groups
    assert_equal(found.read(), wanted.read(), 1e-11)
    scale = wanted.read()
    for feature in range(len(NAMES)):
        assert_equal(found.take_out(feature), wanted.take_out(feature), 1e-9 if rows == 1 else 1e-10)
        for one, other, size in zip(found.read(), wanted.read(), scale, strict=True):
            assert np.abs(one - other).max() <= 1e-11 * np.abs(size).max()
        for group in groups:
            group.put_in(feature)
        assert_equal(found.read(), wanted.read(), 1e-10)


@pytest.mark.parametrize("random", [True, False], ids=["random", "fixed"])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_rows_that_a_feature_dominates_keep_their_digits(kernels: str, order: int, random: bool) -> None:
    large = NAMES.index("re 6")
    group = make_group(get_kernels(), order, 2, 150, random, large)
    found = group.take_out(large)
    alone = make_group(get_kernels(), order, 2, 150, random, large)
    fresh = get_kernels().start_moments(order, 2, 150, random)
    for member in alone.members:
        if member.position != large:
            fresh.put_in(member.posterior, alone.bases[member.position])
    assert_equal(group.read(), [np.array(fresh.total), np.array(fresh.variance)], 1e-9)
    # A feature that is not there has the system of any other.
    nobody = Factors(0 * alone.members[large].posterior.coefficients, None)
    if random:
        nobody = nobody._replace(forms=np.zeros((6, 1, 3)))
    alone.members[large].posterior, alone.moments = nobody, fresh
    alone.put_in(large)
    assert_equal(found, alone.take_out(large), 1e-9)


# Which are taken


def test_the_fastest_that_is_installed_is_taken() -> None:
    assert (
        type(get_kernels()).__name__ == {"numba": "NumbaKernels", "numpy": "NumpyKernels"}[KERNELS[-1]]
    )


def test_a_small_engine_is_not_worth_compiling_for() -> None:
    """A few rows are done before numba is imported."""
    assert isinstance(get_kernels(600 * 8), NumpyKernels)
    assert isinstance(make_engine("y ~ afm(x0, x1)", pair_frame(50, 2)).engine.kernels, NumpyKernels)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_can_be_named(name: str) -> None:
    with use_kernels(name):
        assert type(get_kernels()).__name__.lower() == f"{name}kernels"


def test_without_numba_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    assert isinstance(package._fastest.__wrapped__(), NumpyKernels)


def test_a_numba_that_cannot_be_imported_is_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> Any:
        raise ImportError("Numba needs NumPy 2.3 or less")

    package._load.cache_clear()
    monkeypatch.setattr(package, "find_spec", lambda name: name)
    monkeypatch.setattr(package, "import_module", fail)
    with pytest.warns(
        AhofmWarning, match="numba is installed but cannot be imported .Numba needs NumPy"
    ):
        assert isinstance(package._fastest.__wrapped__(), NumpyKernels)
    package._load.cache_clear()


@needs_numba
def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from ahofm_keras.solvers.kernels.compiled import compiler

    compile_function, asked = numba.njit, []

    def njit(cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compile_function(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiler.compiled(lambda x: x + 1)(1) == 2
    assert asked == [True, False]


@needs_numba
def test_what_is_kept_on_disk_is_that_of_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba looks at the file of a function alone, and keeps what it calls with it."""
    from ahofm_keras.solvers.kernels.compiled import compiler, moments, put_in

    stamps = [own._cache._cache_file._source_stamp for own in (put_in, moments.add_tile)]
    assert [stamp[-1] for stamp in stamps] == [compiler._SOURCES] * 2
    assert stamps[0] != stamps[1]
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read(self) + b"#" * (self.name == "vectors.py"))
    assert compiler._digest_of_sources() != compiler._SOURCES


@needs_numba
def test_loops_that_cannot_be_marked_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from ahofm_keras.solvers.kernels.compiled import compiler

    compile_function, asked = numba.njit, []

    def njit(cache: bool = False, **options: Any) -> Any:
        asked.append(cache)
        return (lambda function: function) if cache else compile_function(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert compiler.compiled(lambda x: x + 1)(1) == 2
    assert asked == [True, False]


class SlowToStart(NumpyKernels):
    """Kernels that have to be prepared."""

    def __init__(self, kept: bool = True) -> None:
        self.kept, self.ready = kept, False

    def is_ready(self) -> bool:
        return self.ready

    def prepare(self) -> None:
        self.ready = self.kept


def test_loops_are_compiled_for_large_fits_and_loaded_for_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = SlowToStart()
    monkeypatch.setattr(package, "_fastest", lambda: fast)
    assert get_kernels(package.WORTH_COMPILING) is fast
    assert get_kernels(package.WORTH_COMPILING - 1) is not fast
    assert package.compile_kernels() == "Compiled."
    assert get_kernels(package.WORTH_LOADING) is fast
    assert get_kernels(package.WORTH_LOADING - 1) is not fast
    assert package.compile_kernels() == "Nothing to compile: it was done before."


def test_compiling_says_what_it_could_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_fastest", lambda: SlowToStart(kept=False))
    assert package.compile_kernels() == "Compiled, but there is no folder to keep it in."
    monkeypatch.setattr(package, "_fastest", lambda: package._load("numpy"))
    for spec, why in [(None, "is not installed"), ("numba", "cannot be imported")]:
        monkeypatch.setattr(package, "find_spec", lambda name, spec=spec: spec)
        assert package.compile_kernels() == f"Nothing to compile: numba {why}."


@needs_numba
def test_preparing_compiles_all_that_a_fit_calls() -> None:
    """Were a kind of argument left out, the first fit would wait for it."""
    from ahofm_keras.solvers.kernels import compiled

    fast = package._load("numba")
    fast.prepare()
    assert fast.is_ready()
    known = {function: len(function.signatures) for function in compiled.ENTRIES}
    assert min(known.values()) > 0
    with use_kernels("numba"):
        for variational in (True, False):
            engine = make_engine(
                "y ~ ahofm(x0, x1, x2, D=3, F=2) + te(x0, x1)", pair_frame(90), variational=variational
            )
            engine.set_means(lambda block: np.linspace(1e-9, 1e3, len(block.mean)))
            engine.sweep()
    assert {function: len(function.signatures) for function in compiled.ENTRIES} == known


@needs_numba
def test_loops_of_another_source_or_version_are_not_on_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ahofm_keras.solvers.kernels import compiled

    fast = package._load("numba")
    fast.prepare()
    for function in compiled.ENTRIES:
        file = function._cache._cache_file
        assert file._load_index()
        monkeypatch.setattr(file, "_source_stamp", "another")
    assert not fast.is_ready()


@needs_numba
def test_without_compilation_nothing_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    from ahofm_keras.solvers.kernels import compiled

    monkeypatch.setattr(compiled, "ENTRIES", (lambda: None,))  # as with NUMBA_DISABLE_JIT
    assert not package._load("numba").is_ready()


def test_importing_the_library_does_not_import_numba() -> None:
    code = "import sys, ahofm_keras, ahofm_keras.solvers.engine; print('numba' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.split()[-1] == "False"


# Chunks


def test_every_core_has_a_chunk_where_there_are_rows() -> None:
    cores = count_cores()
    assert count_chunks(1999, 2000, 8192) == 1
    assert count_chunks(2000, 2000, 8192) == cores
    assert count_chunks(200_000, 2000, 8192) >= cores
    assert count_chunks(200_000, 2000, 8192) % cores == 0
    assert count_chunks(40, 2000, 7) == 6


def test_rows_shared_by_cores_change_nothing(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, means = pair_frame(2100), []
    for cores in (1, 3):
        monkeypatch.setattr("ahofm_keras.solvers.chunks.count_cores", lambda cores=cores: cores)
        monkeypatch.setattr(type(get_kernels()), "shared_rows", 2000)
        engine = make_engine("y ~ ahofm(x0, x1, x2, F=2, k=6)", data)
        assert len(engine.chunks) == cores
        engine.set_means(lambda block: np.linspace(0.1, 0.5, len(block.mean)))
        for _ in range(3):
            engine.sweep(newton_steps=1)
        means.append(np.concatenate([block.mean for block in engine.blocks]))
    np.testing.assert_allclose(means[0], means[1], rtol=1e-7, atol=1e-9)
