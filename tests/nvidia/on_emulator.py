"""A plugin of pytest that runs the tests of the tensor language on the emulator: `-p tests.nvidia.on_emulator`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nvidia.emulator import EmulatedDevice
from tests.nvidia.programs import with_grids
from tlx.api import device
from tlx.frontends.tensor_language import runtime

_compile, _compiled_for_device = runtime.compile, device.compiled_for_device


def compile_for_emulator(source: Any, target: Any = "", **settings: Any) -> Any:  # noqa: ARG001
    """`tensor_language.compile` for the emulator, whatever the target is."""
    emulated = EmulatedDevice("")
    settings.pop("threads", None)
    return _compile(source, with_grids(device=lambda: emulated), **settings)


def _compiled(lowered: str, defined: Any, emulated: Any, opt_level: int) -> Any:
    if isinstance(emulated, EmulatedDevice):
        emulated.lowered = lowered
    return _compiled_for_device(lowered, defined, emulated, opt_level)


@pytest.fixture(autouse=True)
def on_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel is compiled for the emulator."""
    import tlx

    monkeypatch.setattr(device, "compiled_for_device", _compiled)
    monkeypatch.setattr(runtime, "compile", compile_for_emulator)
    monkeypatch.setattr(tlx.tensor_language, "compile", compile_for_emulator, raising=False)
