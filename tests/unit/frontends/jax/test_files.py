"""Files of StableHLO: artifacts, text, and damaged ones, which give an error and never end the process."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlx
from tests.support.tools import HANG_S, quick, require_module
from tlx.api import files
from tlx.frontends.jax.files import translate_file

jax: Any = require_module("jax")
export: Any = require_module("jax.export")


def model(p: Any, x: Any) -> Any:
    return {"y": jax.nn.softmax(x @ p["w"] + 1), "n": x.sum()}


@cache
def artifact() -> bytes:
    arguments = {"w": np.ones((3, 4), "f4")}, np.ones((2, 3), "f4")
    return export.export(jax.jit(model), platforms=["cpu"])(*arguments).mlir_module_serialized


def test_artifacts_are_translated(tmp_path: Path) -> None:
    path = tmp_path / "model.mlirbc"
    path.write_bytes(artifact())
    function = tlx.compile(path)
    n, y = np.zeros((), "f4"), np.zeros((2, 4), "f4")
    function.main(np.ones((3, 4), "f4"), np.ones((2, 3), "f4"), n, y)
    np.testing.assert_allclose(y, 0.25)
    assert n == 6
    assert files.read_ir(str(path)).startswith(f"; {path}\n")


@pytest.mark.parametrize("limit", [f"-v {6 << 20}", "-t 3000", "-St 3000"])
def test_artifacts_are_read_under_limits_of_the_user(tmp_path: Path, limit: str) -> None:
    """Tighter than, or looser than, those of the process that reads them."""
    (path := tmp_path / "model.mlirbc").write_bytes(artifact())
    command = f"ulimit {limit}; exec {sys.executable} -m tlx.frontends.jax.files model.mlirbc < {path}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    read, report = done.stdout.split("\n", 1)
    assert read == "read"
    assert "@main(" in json.loads(report)["text"]


def test_text_is_translated() -> None:
    text = b"""
    func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = stablehlo.add %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }"""
    function = tlx.compile(translate_file(text, "twice.mlir"))
    y = np.zeros(2, "f4")
    function.twice(np.array([1, 2], "f4"), y)
    assert y.tolist() == [2, 4]


def test_several_tensors_are_scattered_into_together() -> None:
    """The greatest update of each position, and its number."""
    text = b"""
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>, %v: tensor<3xi32>)
        -> (tensor<4xf32>, tensor<4xi32>) {
      %0:2 = "stablehlo.scatter"(%x, %y, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
        %p = stablehlo.compare GT, %c, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %m = stablehlo.select %p, %c, %a : tensor<i1>, tensor<f32>
        %n = stablehlo.select %p, %d, %b : tensor<i1>, tensor<i32>
        stablehlo.return %m, %n : tensor<f32>, tensor<i32>
      }) : (tensor<4xf32>, tensor<4xi32>, tensor<3x1xi32>, tensor<3xf32>, tensor<3xi32>)
          -> (tensor<4xf32>, tensor<4xi32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
    }"""
    function = tlx.compile(translate_file(text, "greatest.mlir"))
    best, numbers = np.zeros(4, "f4"), np.zeros(4, "i4")
    rows, updates = np.array([[1], [3], [1]], "i4"), np.array([2, 3, 1], "f4")
    function.main(np.zeros(4, "f4"), np.full(4, -1, "i4"), rows, updates, np.array([10, 11, 12], "i4"), best, numbers)
    assert best.tolist() == [0, 2, 0, 3]
    assert numbers.tolist() == [-1, 10, -1, 11]


_HUGE = b"""
func.func @f() -> tensor<99999999999xf32> {
  %x = stablehlo.constant dense<1.0> : tensor<99999999999xf32>
  return %x : tensor<99999999999xf32>
}"""
_RECURSIVE = b"""
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %y = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}"""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the module has no function"),
        (b"\xff\xfe", "neither a portable artifact of StableHLO nor MLIR text"),
        (b"define void @f()", "custom op 'define' is unknown|Dialect `define' not found|`define'"),
        (b"func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32>", "the module has no function"),
        (b'func.func @f(%x: i32) { "foo.bar"() : () -> () return }', "1:34: .*unregistered dialect"),
        (b"func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }", "is not static"),
        (b"func.func @f(%x: i32) -> i32 { return %x : i32 }", "parameter x0: i32 is not supported"),
        (b"func.func @f() { return }", "does not return a tensor"),
        (_HUGE, "has more than 2147483647 elements"),
        (_RECURSIVE, "@f calls itself"),
    ],
)
def test_errors(data: bytes, message: str) -> None:
    with pytest.raises(tlx.TlxError, match=message) as caught:
        translate_file(data, "model.mlir")
    assert "model.mlir" in str(caught.value)


def test_names_that_are_no_utf_8_are_errors() -> None:
    data = artifact().replace(b"jax.result_info", b"jax.result_inf\xff").replace(b"main", b"ma\xffn")
    with pytest.raises(tlx.TlxError, match="this is not valid StableHLO"):
        translate_file(data, "model.mlirbc")


@pytest.mark.parametrize("part", quick(range(20)))
def test_damaged_artifacts_are_errors(part: int) -> None:
    """Mutants that MLIR reads by chance are translated, or refused for what they say."""
    for number in range(8):
        choose = random.Random(8 * part + number)
        data = bytearray(artifact())
        if choose.random() < 0.3:
            del data[choose.randrange(len(data)) :]
        for _ in range(choose.choice([1, 1, 2, 5])):
            if data:
                data[choose.randrange(len(data))] = choose.randrange(256)
        try:
            result = translate_file(bytes(data), "mutant.mlirbc")
        except tlx.TlxError as error:
            result = error.message
        assert "translation failed" not in result
