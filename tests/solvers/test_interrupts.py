"""Ctrl-C while numba is imported: it ends the fit, and no later one."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from importlib.util import find_spec

import pytest

from ahofm_keras.solvers.kernels.interrupts import interrupts_wait

# Ctrl-C in the middle of the import of numba, then a loop that numba has to compile.
INTERRUPTED = """
import signal, sys
import numpy as np
from ahofm_keras.solvers import kernels

class Interrupting:
    times = 0
    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.types" and not self.times:
            self.times += 1
            signal.raise_signal(signal.SIGINT)

hook = Interrupting()
sys.meta_path.insert(0, hook)
try:
    kernels._load("numba")
except KeyboardInterrupt:
    print("interrupted", hook.times)
assert type(kernels.get_kernels()).__name__ == "NumbaKernels"

import numba
print(numba.njit(lambda x: x.sum())(np.ones(3)))
"""


@pytest.mark.skipif(find_spec("numba") is None, reason="numba is an extra")
def test_an_interrupted_import_of_numba_breaks_no_later_fit() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == ["interrupted 1", "3.0"]


def test_an_interrupt_comes_when_the_work_is_done() -> None:
    done = []

    def work() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_the_users_own_is_called_and_stays() -> None:
    came: list[int] = []

    def own(number: int, frame: object) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            assert not came
        assert came == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_other_threads_nothing_is_changed() -> None:
    handlers = []

    def work() -> None:
        with interrupts_wait():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
