"""LLVM verifies the stages of a graph's lowering only if it is asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlx.graph import Graph
from tlx.llvm.process import LLVMProcess
from tlx.lower.options import Options


@pytest.mark.parametrize(
    ("settings", "verifies"),
    [
        ({}, False),
        ({"threads": "openmp"}, False),
        ({"options": Options(threads="openmp")}, False),
        ({"verify_each": True}, True),
        ({"options": Options(verify_each=True)}, True),
        ({"options": Options(verify_each=True), "verify_each": False}, False),
    ],
)
def test_llvm_verifies_only_what_it_compiles(
    settings: dict[str, Any], verifies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a large constant takes LLVM long, and the graph's IR is not the user's."""
    requests: list[str] = []
    ask = LLVMProcess.ask

    def noted(self: LLVMProcess, request: str, data: str | bytes, **arguments: Any) -> bytes:
        requests.append(request)
        return ask(self, request, data, **arguments)

    monkeypatch.setattr(LLVMProcess, "ask", noted)
    graph = Graph("scaled")
    graph.output(graph.parameter("x", (64, 64)) * 2.0)
    compiled = graph.compile(**settings)
    assert ("check" in requests) == verifies
    assert compiled(np.ones((64, 64), np.float32)).sum() == 2 * 64 * 64
