"""LLVM verifies the output of each stage for graphs, too, which the front ends of JAX and ONNX make."""

from __future__ import annotations

from typing import Any

import pytest

from tlx.graph import Graph
from tlx.graph.graph import GraphFunction


@pytest.fixture(autouse=True)
def verify_stages_of_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `Graph.compile` verify as `tlx.compile` does; for users, LLVM verifies only what it compiles."""
    compile_graph = Graph.compile

    def verified(graph: Graph, *arguments: Any, **settings: Any) -> GraphFunction:
        if getattr(settings.get("options"), "verify_each", None) is None:
            settings.setdefault("verify_each", None)
        return compile_graph(graph, *arguments, **settings)

    monkeypatch.setattr(Graph, "compile", verified)
