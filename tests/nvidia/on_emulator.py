"""A plugin of pytest that runs the tests of the tensor language, and of graphs, on the emulator.

pytest -p tests.nvidia.on_emulator tests/semantics/frontends/tensor_language
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.nvidia.differences import skip_differences
from tests.nvidia.emulator import EmulatedDevice
from tests.nvidia.programs import with_grids
from tlx.api.device import modules
from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.runtime import kernels as runtime
from tlx.graph import Graph, GraphFunction

_compile, _compile_graph, _assembly_of = runtime.compile, Graph.compile, modules.assembly_of


def compile_for_emulator(source: Any, target: Any = "", **settings: Any) -> Any:  # noqa: ARG001
    """`tensor_language.compile` for the emulator, whatever the target is."""
    emulated = EmulatedDevice("")
    settings.pop("threads", None)
    return _compile(source, with_grids(find_device=lambda: emulated), **settings)


def compile_graph_for_emulator(graph: Graph, target: Any = "", **settings: Any) -> GraphFunction:  # noqa: ARG001
    """`Graph.compile` for the emulator, whatever the target is."""
    emulated = EmulatedDevice("")
    settings.pop("threads", None)
    return _compile_graph(graph, with_grids(find_device=lambda: emulated), **settings)


def recorded(lowered: str, emulated: Any, opt_level: int) -> bytes:
    """The assembly, after the emulator has been told what it is made of."""
    if isinstance(emulated, EmulatedDevice):
        emulated.lowered = lowered
    return _assembly_of(lowered, emulated, opt_level)


def on_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile every kernel for the emulator."""
    monkeypatch.setattr(modules, "assembly_of", recorded)
    # The package takes its `compile` from the module, so it is replaced, and restored, while the module has its own.
    monkeypatch.setattr(tensor_language, "compile", compile_for_emulator)
    monkeypatch.setattr(runtime, "compile", compile_for_emulator)


@pytest.fixture(autouse=True)
def _on_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    on_emulator(monkeypatch)
    monkeypatch.setattr(Graph, "compile", compile_graph_for_emulator)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what does not hold on a GPU."""
    skip_differences(items)
