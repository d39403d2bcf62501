"""LLVM 14, which has typed pointers and cannot store bfloat, compiles BLAS instructions."""

from __future__ import annotations

import subprocess

import pytest

from tests.semantics.frontends.tensor_language.blas.cases import TWO_INPUTS, Case, memrefs
from tests.support.tools import HANG_S, require
from tlx.frontends import tensor_language as tl
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower


@pytest.mark.parametrize("type_", ["f32", "bf16", "f16", "i8", "c32"])
@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_every_instruction_compiles(type_: str, target: str) -> None:
    cases: list[Case] = []
    for instruction in ("axpby.t", "sum", "gemm.n.t", "gemv.t", "ger", "hadamard", "cumsum", "gemm.atomic.n.n"):
        types = [type_] * (3 if instruction.split(".")[0] in TWO_INPUTS else 2)
        plain = instruction.replace(".atomic", "")
        for refs, out in (
            memrefs(plain, types, (17, 5, 9)),
            memrefs(plain, types, (17, 5, 9), open_shape=True, open_stride="all"),
        ):
            name = f"k{len(cases)}"
            cases.append(Case(instruction, refs, out, (type_, 2, False), (type_, 1, True), name=name))
    module = tl.translate("".join(case.text for case in cases), typed_pointers=True)
    text = str(lower(parse(str(module)), target))
    assert "float*" in text or type_ != "f32"
    command = [require("clang-14"), "-x", "ir", "-O1", "-Wno-override-module", "-c", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr[:2000]
