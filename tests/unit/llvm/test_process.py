"""LLVM's process under forks, threads and signals: each request gets its own answer, or an error."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from tests.support.tools import HANG_S, missing
from tlx.llvm import openmp


def printed(program: str, **environment: str) -> list[str]:
    """What a program of `tests.unit.llvm.forks` prints. One that hangs is ended, with its children."""
    command = [sys.executable, "-m", "tests.unit.llvm.forks", program]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | environment,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=HANG_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, _ = process.communicate()
        pytest.fail(f"{program} hangs; it printed {out}")
    assert process.returncode == 0, out
    return out.splitlines()


def test_a_thousand_requests_of_forks_and_threads() -> None:
    assert printed("rounds") == ["right True same process True"]


def test_forks_while_threads_compile() -> None:
    assert printed("compilations") == ["right True"]


def test_start_methods_of_multiprocessing() -> None:
    numbers = [0, 1, 2, 3, 4, 5]
    assert printed("pools") == [f"fork {numbers}", f"spawn {numbers}", f"forkserver {numbers}"]


def test_a_child_that_ends_leaves_the_parents_llvm() -> None:
    assert printed("ends") == ["child True alive True", "same process True", "ends with its owner True"]


def test_a_killed_process_is_restarted() -> None:
    assert printed("kills") == ["right"]


def test_requests_after_an_interrupt_do_not_wait_for_verifying_threads() -> None:
    assert printed("interrupts") == ["interrupted", "restarted False", "right"]


def test_requests_after_interrupts_anywhere_get_their_own_answers() -> None:
    assert printed("interrupts_anywhere")[-1] == "interrupted True processes 1"


def test_interrupts_while_a_verification_is_waited_for() -> None:
    assert printed("interrupted_verifications") == ["accepted 10"]


def test_an_interrupt_of_a_fork_leaves_no_lock() -> None:
    assert printed("interrupted_forks")[-1] == "right True"


def test_an_interrupt_ends_the_compilation_of_parts() -> None:
    assert printed("interrupted_parts") == ["interrupted", "processes 1"]


def test_an_answer_to_another_request_is_an_error() -> None:
    child, error, last = printed("strangers")
    assert (child, last) == ("child True", "right")
    assert "expected LLVM's reply to request" in error
    assert "another process uses the pipes" in error


@pytest.mark.parametrize("name", ["libgomp.so.1", "libomp.so.5"])
def test_teams_of_threads_after_a_fork(name: str) -> None:
    try:
        ctypes.CDLL(name)
    except OSError:
        missing(name)
    assert printed("teams", **{openmp.VARIABLE: name, "OMP_NUM_THREADS": "3"}) == ["right True"]


def test_evaluators_in_threads() -> None:
    assert printed("evaluators") == ["right True limit True"]
