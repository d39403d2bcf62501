"""A plugin of pytest that runs the tests of the tensor language, and of graphs, on this machine's GPU.

pytest -p tests.nvidia.on_device tests/semantics/graph/test_operations.py
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.nvidia.differences import skip_differences
from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.runtime import kernels as runtime
from tlx.graph import Graph, GraphFunction

_compile, _compile_graph = runtime.compile, Graph.compile


def compile_for_device(source: Any, target: Any = "", **settings: Any) -> Any:  # noqa: ARG001
    """`tensor_language.compile` for the GPU, whatever the target is."""
    settings.pop("threads", None)
    return _compile(source, "nvidia", **settings)


def compile_graph_for_device(graph: Graph, target: Any = "", **settings: Any) -> GraphFunction:  # noqa: ARG001
    """`Graph.compile` for the GPU, whatever the target is."""
    settings.pop("threads", None)
    return _compile_graph(graph, "nvidia", **settings)


@pytest.fixture(autouse=True)
def _on_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package takes its `compile` from the module, so it is replaced, and restored, while the module has its own.
    monkeypatch.setattr(tensor_language, "compile", compile_for_device)
    monkeypatch.setattr(runtime, "compile", compile_for_device)
    monkeypatch.setattr(Graph, "compile", compile_graph_for_device)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what does not hold on a GPU."""
    skip_differences(items)
