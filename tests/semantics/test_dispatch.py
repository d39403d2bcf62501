"""Several versions of each kernel: every one gives the same result, and the program takes the right one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.support.product_texts import product_text
from tlx.api.validation import validate
from tlx.evaluate import Machine
from tlx.evaluate.context import AssemblyTable
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.legalize.x86.features import CPU_FEATURES
from tlx.legalize.x86.host import CPUID_BITS
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles.versions import at_level, levels
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target
from tlx.target.target import Target

_ALL = "generic,avx2,avx512,amx,amx+amx-fp16"


def _program(element: str, result: str, m: int, n: int, k: int) -> str:
    return product_text(m, n, k, element, result=result, relu=True)


def _batch(count: int, n: int) -> str:
    """`count` products of n x n."""
    shape = f"<3 x i32> <i32 {count}, i32 {n}, i32 {n}>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer"
    result = f"<{count * n * n} x float>"
    return f"""define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {shape}, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, {shape}, <3 x i32> zeroinitializer)
  %m = call {result} @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo({result} %m, {shape})
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}}
"""


_KINDS = {
    ("float", "float"): (np.float32, np.float32),
    ("bfloat", "float"): (ml_dtypes.bfloat16, np.float32),
    ("half", "float"): (np.float16, np.float32),
    ("i8", "i32"): (np.int8, np.int32),
}
_TYPES = list(_KINDS)


def _operands(types: tuple[str, str], m: int, n: int, k: int) -> tuple[Array, Array, Array, Array]:
    """A, B, room for C, and C."""
    operand, result = _KINDS[types]
    random = np.random.default_rng(5)
    a, b = (random.integers(-5, 6, shape).astype(operand) for shape in ((m, k), (k, n)))
    expected = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0).astype(result)
    return a, b, np.zeros((m, n), result), expected


def _runs(version: Target) -> bool:
    features = tuple(f[1:] for f in version.features)
    return not missing_features(Target("x", "x", requires=features), cpu_flags())


@pytest.mark.parametrize("types", _TYPES, ids=str)
def test_stages_mean_the_same_on_every_machine(types: tuple[str, str]) -> None:
    assert validate(_program(*types, 7, 21, 9), _ALL, runs=1) == []


@pytest.mark.parametrize("types", _TYPES, ids=str)
def test_each_version_computes_the_same(types: tuple[str, str]) -> None:
    """Levels of machines like this one, or weaker, run; the others are evaluated."""
    a, b, c, expected = _operands(types, 33, 40, 70)
    text = str(lower(parse(_program(*types, 33, 40, 70)), _ALL))
    for level, version in enumerate(find_target(_ALL).versions, 1):
        if not _runs(version):
            continue
        forced = at_level(text, level)
        assert forced != text
        c[:] = 0
        tlx.compile(forced)(c, a, b)
        np.testing.assert_array_equal(c, expected, version.name)


@pytest.mark.parametrize("types", _TYPES, ids=str)
def test_the_program_finds_the_level_of_this_machine(types: tuple[str, str]) -> None:
    a, b, c, expected = _operands(types, 33, 40, 70)
    text = str(lower(parse(_program(*types, 33, 40, 70)), _ALL))
    text += "\ndefine i32 @level() {\n  %l = load i32, ptr @tlx.cpu.level\n  ret i32 %l\n}\n"
    module = tlx.compile(text)
    assert module["level"]() == 0
    for _ in range(2):
        c[:] = 0
        module["f"](c, a, b)
        np.testing.assert_array_equal(c, expected)
    versions = find_target(_ALL).versions
    assert module["level"]() == max((i for i, v in enumerate(versions, 1) if _runs(v)), default=1)


def test_the_python_api_takes_several_targets() -> None:
    a, b, c, expected = _operands(("float", "float"), 8, 24, 16)
    tlx.compile(_program("float", "float", 8, 24, 16), target="avx512,generic")(c, a, b)
    np.testing.assert_array_equal(c, expected)


def _answers(features: Sequence[str], *, permitted: bool, saved: int = -1) -> AssemblyTable:
    """What a processor with these features answers."""

    def answer(instruction: str, numbers: Sequence[int]) -> Sequence[int]:
        if instruction == "xgetbv":
            return (saved & 0xFFFF_FFFF, 0)
        if instruction == "syscall":
            return (0 if permitted else -1 & (1 << 64) - 1,)
        if numbers[0] == 0:
            return (7, 0, 0, 0)
        words = dict.fromkeys(("eax", "ebx", "ecx", "edx"), 0)
        for bit in (CPUID_BITS[f] for f in features):
            if [bit.leaf, bit.subleaf] == list(numbers):
                words[bit.register] |= 1 << bit.bit
        if numbers[0] == 1:
            words["ecx"] |= 1 << 27
        if list(numbers) == [7, 0]:
            words["eax"] = 1
        return tuple(words.values())

    return {name: partial(answer, name) for name in ("cpuid", "xgetbv", "syscall")}


def _level(processor: AssemblyTable, *, asks: bool = True) -> str:
    """The name of the version that a program takes on a processor."""
    text = str(lower(parse(_program("i8", "i32", 4, 8, 8)), _ALL, options=Options(request_permission=asks)))
    text += (
        "\ndefine i32 @level() {\n  call void @tlx.cpu.detect()\n  %l = load i32, ptr @tlx.cpu.level\n  ret i32 %l\n}\n"
    )
    level: int = Machine(parse(text), assembly=processor).call("level")
    return find_target(_ALL).versions[level - 1].name


_BEST = {
    "haswell": "avx2",
    "znver3": "avx2",
    "knl": "avx2",
    "alderlake": "avx2.avxvnni",
    "sierraforest": "avx2.avxvnni",
    "skylake-avx512": "avx512",
    "icelake-server": "avx512.avx512vnni",
    "znver4": "avx512.avx512vnni.avx512bf16",
    "sapphirerapids": "amx",
    "graniterapids": "amx.amx-fp16",
}


@pytest.mark.parametrize(("cpu", "best"), _BEST.items())
def test_every_processor_runs_its_best_version(cpu: str, best: str) -> None:
    assert _level(_answers(CPU_FEATURES[cpu], permitted=True)) == best


def test_tiles_are_used_if_linux_permits_it() -> None:
    answer = _answers(CPU_FEATURES["sapphirerapids"], permitted=False)
    assert _level(answer) == "avx512.avx512vnni.avx512bf16"
    assert _level(answer, asks=False) == "avx512.avx512vnni.avx512bf16"


@pytest.mark.parametrize(("saved", "best"), [(0, "generic"), (0b110, "avx2"), (0b1110_0110, "avx512")])
def test_registers_that_the_system_does_not_save_are_not_used(saved: int, best: str) -> None:
    answer = _answers(CPU_FEATURES["sapphirerapids"], permitted=True, saved=saved)
    assert _level(answer).split(".")[0] == best


def test_old_processors_are_not_queried_for_unknown_leaves() -> None:
    executed: list[str] = []

    def answer(instruction: str, numbers: Sequence[int]) -> Sequence[int]:
        executed.append(f"{instruction} {numbers[0]}")
        return (1, 0, 0, 0)

    assert _level({name: partial(answer, name) for name in ("cpuid", "xgetbv", "syscall")}) == "generic"
    assert set(executed) == {"cpuid 0", "cpuid 1"}


def test_levels_with_different_kernels() -> None:
    floats = str(lower(parse(_program("float", "float", 9, 32, 16)), "avx2,avx512,amx"))
    assert levels(floats) == [0, 3]
    assert levels(str(lower(parse(_program("i8", "i32", 64, 64, 64)), "avx2,avx512,amx"))) == [0, 2, 3, 4, 6]
    assert levels("define void @f() {\n  ret void\n}\n") == []


def test_loops_around_kernels_have_versions() -> None:
    text = str(lower(parse(_batch(5, 16)), _ALL))
    assert validate(_batch(5, 16), _ALL, runs=1) == []
    random = np.random.default_rng(6)
    a, b = (random.integers(-5, 6, (5, 16, 16)).astype(np.float32) for _ in range(2))
    for level in levels(text):
        if level == 0 or _runs(find_target(_ALL).versions[level - 1]):
            c = np.zeros_like(a)
            tlx.compile(at_level(text, level))(c, a, b)
            np.testing.assert_array_equal(c, a @ b)


def test_versions_on_several_threads() -> None:
    a, b, c, expected = _operands(("float", "float"), 64, 96, 70)
    options = Options(threads="openmp", thread_cycles=0)
    tlx.compile(_program("float", "float", 64, 96, 70), target="avx2,avx512", options=options)(c, a, b)
    np.testing.assert_array_equal(c, expected)


def test_equal_versions_are_merged() -> None:
    text = str(lower(parse(_program("float", "float", 7, 32, 16)), "avx512,amx"))
    assert "tlx.cpu.level" not in text
    assert text.count("define internal") == 1
