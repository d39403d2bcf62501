"""Small vectors at each optimisation level of LLVM: across blocks, as parameters, as results of calls.

Without optimisation LLVM's quick instruction selection is wrong for the results of calls whose registers the calling
convention chooses otherwise than the type does: vectors of bfloat, half and i1.
"""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tlx
from tests.support.tools import require_processor
from tlx.intrinsics.numpy_types import dtype_of
from tlx.ir.types import BFLOAT
from tlx.llvm.codegen import emit_code
from tlx.llvm.loader import LoadedObject
from tlx.target.host import cpu_flags, has_feature

COUNTS = (1, 2, 3, 4, 7, 8, 12, 16, 32, 33, 64)
AVX512 = "+avx512f,+avx512bw,+avx512vl,+avx512dq"
FEATURES = {
    "sse2": "",
    "avx2": "+avx2,+fma,+f16c",
    "avx512f": "+avx512f",
    "avx512": AVX512,
    "avx512bf16": f"{AVX512},+avx512bf16",
    "avx512fp16": f"{AVX512},+avx512fp16",
}
SOURCES = {
    "loaded": "%v = load VECTOR, ptr %x, align 1",
    "called": "%v = call VECTOR @get.NAME(ptr %x)",
    "passed": "%l = load VECTOR, ptr %x, align 1\n  %v = call VECTOR @same.NAME(VECTOR %l)",
    "indirect": "%at = load volatile ptr, ptr @at.NAME\n  %v = call VECTOR %at(ptr %x)",
}
USES = {
    "same block": "%u = select i1 true, VECTOR %v, VECTOR %v",
    "next block": "br i1 %c, label %next, label %end\nnext:\n  %u = select i1 true, VECTOR %v, VECTOR %v\n  LAST",
    "operation": "%o = OPERATION\n  br i1 %c, label %next, label %end\nnext:\n  %u = OPERATION\n  LAST",
    "phi": "br i1 %c, label %next, label %last\nnext:\n  LAST\n"
    "  %u = phi VECTOR [ %v, %next ], [ zeroinitializer, %0 ]",
}
FLOATS = {"bfloat": "bf16", "half": "f16"}
BITS = {"bfloat": 16, "half": 16, "i1": 1}
FUNCTION = """
define void @"SOURCE.USE.NAME"(ptr %x, ptr %z) {
  %c = load volatile i1, ptr @c
  GIVEN
  USED
  store VECTOR %u, ptr %z, align 1
  ret void
END}
"""
HELPERS = """
@at.NAME = global ptr @get.NAME

define VECTOR @get.NAME(ptr %x) noinline {
  %v = load VECTOR, ptr %x, align 1
  ret VECTOR %v
}

define VECTOR @same.NAME(VECTOR %v) noinline {
  ret VECTOR %v
}
"""
DOTTED = """
define <8 x bfloat> @same(<8 x bfloat> %x) {
  ret <8 x bfloat> %x
}

define void @f(ptr %x, ptr %exp, ptr %whole, ptr %sums) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <1 x i32> <i32 8>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %loaded = call <8 x bfloat> @llvm.tensor.tovector(token %t)
  %v = call <8 x bfloat> @same(<8 x bfloat> %loaded)
  %e = call <8 x bfloat> @llvm.exp.v8bf16(<8 x bfloat> %v)
  %w = call <8 x bfloat> @llvm.trunc.v8bf16(<8 x bfloat> %v)
  store <8 x bfloat> %e, ptr %exp, align 1
  store <8 x bfloat> %w, ptr %whole, align 1
  br label %loop

loop:
  %s = phi <8 x bfloat> [ zeroinitializer, %0 ], [ %n, %loop ]
  %i = phi i32 [ 0, %0 ], [ %j, %loop ]
  %n = fadd <8 x bfloat> %w, %s
  %j = add i32 %i, 1
  %c = icmp eq i32 %j, 4
  br i1 %c, label %end, label %loop

end:
  store <8 x bfloat> %n, ptr %sums, align 1
  ret void
}

declare <8 x bfloat> @llvm.exp.v8bf16(<8 x bfloat>)
declare <8 x bfloat> @llvm.trunc.v8bf16(<8 x bfloat>)
"""


def is_refused(element: str, count: int, features: str) -> bool:
    """Whether LLVM dies of the type, at each level or at -O0: it says so, and nothing is wrong."""
    rests = "avx512bf16" in features and element == "bfloat" and count > 8 and (count - 1) & (count - 2) == 0
    return rests or ("avx512" in features and element == "i1" and count == 1)


def program(features: str) -> tuple[str, dict[str, tuple[str, int]]]:
    """A module with a function for each type, source and use; the type of each."""
    texts = ["@c = global i1 true\n"]
    functions: dict[str, tuple[str, int]] = {}
    for element in BITS:
        for count in COUNTS:
            if is_refused(element, count, features):
                continue
            name = f"{element}.{count}"
            mangled = f"v{count}{FLOATS.get(element, 'i1')}"
            operation = (
                f"call VECTOR @llvm.fabs.{mangled}(VECTOR %v)"
                if element in FLOATS
                else "xor VECTOR %v, zeroinitializer"
            )
            pieces = [HELPERS]
            if element in FLOATS:
                pieces.append(f"declare VECTOR @llvm.fabs.{mangled}(VECTOR)\n")
            for source, definition in SOURCES.items():
                for use, used in USES.items():
                    end = "\nend:\n  ret void\n" if "%end" in used else ""
                    text = FUNCTION.replace("GIVEN", definition).replace("USED", used).replace("END", end)
                    pieces.append(text.replace("SOURCE", source).replace("USE", use))
                    functions[f"{source}.{use}.{name}"] = element, count
            text = "".join(pieces).replace("LAST", "br label %last\nlast:").replace("OPERATION", operation)
            texts.append(text.replace("VECTOR", f"<{count} x {element}>").replace("NAME", name))
    return "".join(texts), functions


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("machine", FEATURES)
def test_small_vectors(machine: str, level: int) -> None:
    features = FEATURES[machine]
    if not all(has_feature(feature[1:], cpu_flags()) for feature in features.split(",") if feature):
        pytest.skip(f"this machine has no {machine}")
    text, functions = program(features)
    library = LoadedObject(emit_code(text, "obj", level, features=features), list(functions))
    wrong: list[str] = []
    for name, (element, count) in functions.items():
        size = (count * BITS[element] + 7) // 8
        source_bytes = np.arange(1, size + 1, dtype=np.uint8) * 37 & 0x3F
        if element == "i1":
            source_bytes[-1] &= (1 << (count - 1) % 8 + 1) - 1
        actual = np.zeros(size + 8, np.uint8)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address(name))(
            source_bytes.ctypes.data, actual.ctypes.data
        )
        if actual[:size].tobytes() != source_bytes.tobytes() or actual[size:].any():
            wrong.append(name)
    assert not wrong


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["generic", "avx2", "avx512", "amx"])
def test_bfloat_of_a_program(name: str, level: int) -> None:
    """Results of the program's own functions, used by elementwise operations and in loops."""
    require_processor(name)
    bfloat = dtype_of(BFLOAT).type
    x = np.array([-6.5, 5.25, -3, 2, 1.5, -1, 4, 3], bfloat)
    exp, whole, sums = (np.zeros(8, bfloat) for _ in range(3))
    tlx.compile(DOTTED, name, entry="f", opt_level=level)(x, exp, whole, sums)
    assert np.allclose(exp.astype(float), np.exp(x.astype(float)), rtol=1e-2)
    assert np.array_equal(whole.astype(float), np.trunc(x.astype(float)))
    assert np.array_equal(sums, whole * bfloat(4))
