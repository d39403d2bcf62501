"""Each test runs on the emulator and, with `-m nvidia`, on the GPU of this machine."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.nvidia.emulator import COMPILER, Emulator
from tests.nvidia.on_device import compile_for_device
from tests.nvidia.on_emulator import on_emulator
from tests.nvidia.programs import run_emulated, run_on_device
from tlx.frontends import tensor_language as tl

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # tests run side by side on one GPU


@pytest.fixture(autouse=True)
def unload_emulators() -> Iterator[None]:
    """Free the memory of a test's emulators."""
    yield
    for emulator in set(Emulator.loaded):
        emulator.unload()
        Emulator.loaded.discard(emulator)


@pytest.fixture(params=["emulator", pytest.param("device", marks=pytest.mark.nvidia)])
def run(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    """Runs a program on arrays and numbers; returns them."""
    if request.param == "device":
        return run_on_device
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    return run_emulated


@pytest.fixture(params=["emulator", pytest.param("device", marks=pytest.mark.nvidia)])
def compile_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Compiles kernels for the emulator or for the GPU of this machine."""
    if request.param == "device":
        return compile_for_device
    if COMPILER is None:
        pytest.skip("the emulator needs a C compiler")
    on_emulator(monkeypatch)
    return tl.compile
