"""LLVM verifies the stages of a graph's lowering only if it is asked to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlx.graph import Graph
from tlx.llvm.process import LLVMProcess


@pytest.mark.parametrize("verifies", [False, True])
def test_llvm_verifies_only_what_it_compiles(verifies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a large constant takes LLVM long, and the graph's IR is not the user's."""
    requests: list[str] = []
    ask = LLVMProcess.ask

    def noted(self: LLVMProcess, request: str, data: str | bytes, **arguments: Any) -> bytes:
        requests.append(request)
        return ask(self, request, data, **arguments)

    monkeypatch.setattr(LLVMProcess, "ask", noted)
    graph = Graph("scaled")
    graph.output(graph.parameter("x", (64, 64)) * 2.0)
    compiled = graph.compile(verify_each=True) if verifies else graph.compile()
    assert ("check" in requests) == verifies
    assert compiled(np.ones((64, 64), np.float32)).sum() == 2 * 64 * 64
