"""LLVM 14 compiles what SPMD regions become, with pointers that have types."""

from __future__ import annotations

import subprocess
from typing import Final

import pytest

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.spmd.programs import generate
from tests.support.tools import require
from tlx.ir.parser.module import parse
from tlx.lower import pipeline

TYPES: Final = ("i8", "i64", "bf16", "f16", "f32", "f64", "c32")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::tlx.diagnostics.TlxWarning")
def test_random_kernels(seed: int) -> None:
    compiled(str(tl.emitted(generate(seed).program, typed_pointers=True)), "avx512")


@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_everything(target: str) -> None:
    """Masked, strided and gathered accesses, atomics, subgroup operations and slots of every kind of type."""
    ops = {type_: ("add",) if type_[0] == "c" else ("add", "max") for type_ in TYPES}
    text = "\n".join(
        f"""
func @{type_}(%X: memref<{type_}x?>, %Y: memref<{type_}x?,strided<?>>, %K: memref<indexx?>, %n: index)
    attributes {{subgroup_size=16, work_group_size=[32,1]}} {{
  %zero = constant 0 : index
  foreach (%i)=(%zero),(%n) {{
    %k = load %K[%i] : index
    %x = load %X[%i] : {type_}
    %y = load %X[%k] : {type_}
    %z = load %Y[%i] : {type_}
    %a = add %x, %y : {type_}
    %b = mul %a, %z : {type_}
    store %b, %Y[%i]
    atomic_store.release %b, %X[%k]
  }}
  parallel {{
    %l = subgroup_local_id : i32
    %i = cast %l : index
    %x = load %X[%i] : {type_}
    %v = subview %X[%i:%n] : memref<{type_}x?>
    barrier.global.local
    %s = subgroup_inclusive_scan_{op} %x : {type_}
    %r = subgroup_reduce_{op} %s : {type_}
    %g = subgroup_linear_id : i32
    %t = subgroup_broadcast %s, %g : {type_}
    %o = atomic_{op}.device.acquire %r, %v[%zero] : {type_}
    %p = add %o, %t : {type_}
    atomic_store %p, %v[%zero]
    %u = atomic_load.acquire %v[%i] : {type_}
    %w = add %t, %u : {type_}
    store %w, %v[%zero]
  }}
}}""".replace(f"@{type_}(", f"@{type_}_{op}(")
        for type_ in TYPES
        for op in ops[type_]
    )
    compiled(str(tl.translate(text, typed_pointers=True)), target)


def compiled(text: str, target: str) -> None:
    """Lower a module and have LLVM 14 make machine code of it."""
    lowered = str(pipeline.lower(parse(text), target))
    done = subprocess.run(
        [require("llc-14"), "-O2", "-o", "/dev/null"], input=lowered, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:2000]
