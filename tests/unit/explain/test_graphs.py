"""Pages about functions of JAX, exported to files, and about graphs written in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.tools import require_module
from tlx.cli.group import group
from tlx.graph import Graph

jax: Any = require_module("jax")
export: Any = require_module("jax.export")


def _page(path: Path) -> str:
    report = path.with_suffix(".html")
    result = CliRunner().invoke(group, ["explain", str(path), "--target=avx512", "-o", str(report)])
    assert result.exit_code == 0, result.output
    return report.read_text()


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_a_function_of_jax(suffix: str, tmp_path: Path) -> None:
    def layer(x: Any, w: Any, bias: Any) -> Any:
        return jax.nn.relu(x @ w + bias)

    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((16, 32), (32, 64), (64,))]
    exported = export.export(jax.jit(layer), platforms=["cpu"])(*shapes)
    path = tmp_path / f"layer{suffix}"
    if suffix == ".mlir":
        path.write_text(exported.mlir_module())
    else:
        path.write_bytes(exported.mlir_module_serialized)
    text = _page(path)
    assert "matmul 16x64x32 float" in text
    assert "llvm.tensor.load.p0" in text


def test_a_graph(tmp_path: Path) -> None:
    g = Graph("layer")
    x, w = g.parameter("x", (16, 32)), g.parameter("w", (32, 64))
    g.output(g.relu(x @ w), "y")
    path = tmp_path / "layer.ll"
    path.write_text(g.text())
    assert "matmul 16x64x32 float" in _page(path)
