"""Memory: modules and machines are freed when nobody refers to them, without a garbage collection."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.ir.tensors.inference import verify_tensors
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_LIT = Path(__file__).parents[2] / "lit" / "lower"


@pytest.mark.parametrize("target", ["amx", "avx512"])
@pytest.mark.parametrize(
    "name",
    [
        "dynamic/memory.ll",
        "dynamic/product.ll",
        "to_2d/convolution/convolution.ll",
        "to_2d/convolution/im2col.ll",
        "to_2d/contraction/contract.ll",
        "to_2d/contraction/matmul_batch.ll",
        "to_2d/loop_fusion.ll",
        "to_tiles/packing/constant_arguments.ll",
        "to_tiles/epilogue/epilogue.ll",
        "to_tiles/matrix_units/prefetch_a.ll",
    ],
)
def test_a_lowered_module_is_freed(name: str, target: str) -> None:
    module = parse((_LIT / name).read_text())
    options = Options(verify_each=False)
    gc.collect()
    gc.disable()
    try:
        lowered = lower(module, target, options=options)
        alive = [weakref.ref(module), *map(weakref.ref, lowered.functions)]
        assert alive
        del module, lowered
        assert [reference() for reference in alive if reference() is not None] == []
    finally:
        gc.enable()


def test_an_analysed_module_is_freed() -> None:
    module = parse((_LIT / "to_2d/contraction/matmul.ll").read_text())
    gc.collect()
    gc.disable()
    try:
        verify_tensors(module)
        alive = [weakref.ref(module), *map(weakref.ref, module.functions)]
        del module
        assert [reference() for reference in alive if reference() is not None] == []
    finally:
        gc.enable()


def test_a_machine_and_its_memory_are_freed() -> None:
    module = parse("""
@table = internal constant [2 x i64] [i64 3, i64 4]

define i64 @power(i64 %n, ptr %p) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %r = phi i64 [ 1, %entry ], [ %m, %loop ]
  %base = call i64 @base(ptr %p)
  %m = mul i64 %r, %base
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop

exit:
  ret i64 %m
}

define i64 @base(ptr %p) {
  %t = load i64, ptr @table
  %x = load i64, ptr %p
  %y = mul i64 %t, %x
  ret i64 %y
}
""")
    machine = Machine(module)
    gc.collect()
    gc.disable()
    try:
        assert machine.call("power", 2, np.array([5])) == 225
        alive = [weakref.ref(machine), weakref.ref(machine.memory)]
        del machine
        assert [reference() for reference in alive if reference() is not None] == []
    finally:
        gc.enable()
