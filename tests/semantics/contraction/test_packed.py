"""Products of matrices that programs store in blocks, read as they lie: evaluated before and after each stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest

from tests.support.remarks import remarks_of
from tests.support.tools import quick_by_target
from tlx.api.validation import validate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")
_TYPES: Final = {"float": "float", "bfloat": "float", "half": "half", "i8": "i32", "double": "double"}


def _vector(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


def _token(name: str, call: str, shape: Sequence[int], pitches: Sequence[int] | None = None) -> str:
    """A token of a row-major tensor; `call` is the intrinsic and its first operand."""
    zeros = _vector([0] * len(shape))
    tail = f", {_vector(pitches or [0] * len(shape))}" if "load" in call else ""
    return (
        f"  %{name} = call token @llvm.tensor.{call}, {_vector(shape)}, {_vector(range(len(shape)))}, {zeros}{tail})\n"
    )


def _program(seed: int) -> str:
    """A product of a matrix and one in blocks of rows and columns, in any order, perhaps interleaved."""
    rng = np.random.default_rng(seed)
    element = str(rng.choice(list(_TYPES)))
    result = _TYPES[element]
    group = int(rng.choice([1, 2, 4]))
    inner = int(rng.choice([1, 2, 8]))
    width = int(rng.choice([4, 16, 32]))
    blocks, strips, rows = int(rng.integers(1, 4)), int(rng.integers(2, 4)), int(rng.choice([3, 16, 33]))
    sizes = {"K": blocks, "k": inner * 2, "v": group, "N": strips, "n": width}
    order = [*rng.permutation(["K", "N"]), *rng.permutation(["k", "n"]), "v"]
    depth, columns = blocks * inner * 2 * group, strips * width
    is_left, is_contract = bool(rng.integers(2)), bool(rng.integers(2))
    shape = [depth, columns] if not is_left else [columns, depth]
    wanted = ["K", "k", "v", "N", "n"] if not is_left else ["N", "n", "K", "k", "v"]
    count = depth * columns
    other = [rows, depth] if not is_left else [depth, rows]
    gap = int(rng.integers(3)) * group * inner * 2
    text = "define void @f(ptr %a, ptr %p, ptr noalias %c) {\n"
    text += _token("packed", f"load(ptr elementtype({element}) %p", [sizes[d] for d in order])
    perm = [order.index(d) for d in wanted]
    text += f"  %b = call <{count} x {element}> @llvm.tensor.reshape.permute(token %packed, {_vector(perm)}, "
    text += f"{_vector(shape)})\n" + _token("bt", f"typeinfo(<{count} x {element}> %b", shape)
    text += _token("at", f"load(ptr elementtype({element}) %a", other, [0, other[1] + gap])
    if rng.integers(2):  # a value, not a load
        size = math.prod(other)
        text += f"  %v = call <{size} x {element}> @llvm.tensor.tovector(token %at)\n"
        text += f"  %w = {'add' if element == 'i8' else 'fadd'} <{size} x {element}> %v, %v\n"
        text += _token("ot", f"typeinfo(<{size} x {element}> %w", other)
    else:
        text = text.replace("%at =", "%ot =")
    x, y = ("%bt", "%ot") if is_left else ("%ot", "%bt")
    axes = ", <1 x i32> <i32 1>, <1 x i32> <i32 0>" if is_contract else ""
    total = rows * columns
    text += f"  %r = call <{total} x {result}> @llvm.tensor.{'contract' if is_contract else 'matmul'}"
    text += f"(token {x}, token {y}{axes})\n"
    if result == "float" and rng.integers(2):
        text += f"  %s = fmul <{total} x float> %r, %r\n  store <{total} x float> %s, ptr %c\n"
    else:
        text += f"  store <{total} x {result}> %r, ptr %c\n"
    return text + "  ret void\n}\n"


@pytest.mark.parametrize(("seed", "target"), quick_by_target(range(80), _TARGETS, 6))
def test_products_of_packed_matrices_hold_the_same_numbers(seed: int, target: str) -> None:
    assert validate(_program(seed), target, runs=1) == []


def _lowered(seed: int, target: str) -> str:
    return str(lower(parse(_program(seed)), target, options=Options(stop_after="to-2d")))


def _contraction(element: str, rows: int, order: Sequence[str], sizes: dict[str, int]) -> str:
    """A contraction with a weight whose dimensions, blocks of rows K and columns N, are stored in an order."""
    result, depth = _TYPES[element], [sizes[d] for d in "Kkv" if d in sizes]
    shape = [sizes[d] for d in order]
    total = rows * math.prod(sizes[d] for d in "Nn" if d in sizes)
    summed = [order.index(d) for d in "Kkv" if d in sizes]
    text = "define void @f(ptr %a, ptr %p, ptr noalias %c) {\n"
    text += _token("x", f"load(ptr elementtype({element}) %a", [rows, *depth])
    text += _token("w", f"load(ptr elementtype({element}) %p", shape)
    axes = f"{_vector(range(1, len(depth) + 1))}, {_vector(summed)}"
    text += f"  %r = call <{total} x {result}> @llvm.tensor.contract(token %x, token %w, {axes})\n"
    return text + f"  store <{total} x {result}> %r, ptr %c\n  ret void\n}}\n"


_PAIRS: Final = {"K": 4, "N": 2, "k": 16, "n": 32, "v": 2}
_QUADS: Final = {"K": 4, "N": 2, "k": 8, "n": 32, "v": 4}


@pytest.mark.parametrize(
    ("target", "element", "order", "sizes"),
    [
        ("avx2", "float", "NKkn", {"K": 4, "N": 2, "k": 32, "n": 32}),
        ("avx512", "float", "Nkn", {"N": 4, "k": 96, "n": 16}),
        ("avx512", "bfloat", "knv", {"k": 64, "n": 64, "v": 2}),
        ("avx512", "bfloat", "NKknv", _PAIRS),
        ("avx512", "bfloat", "KNknv", _PAIRS),
        ("amx", "bfloat", "knv", {"k": 64, "n": 64, "v": 2}),
        ("amx", "bfloat", "NKknv", _PAIRS),
        ("amx", "bfloat", "KNknv", _PAIRS),
        ("amx", "i8", "NKknv", _QUADS),
    ],
)
def test_contractions_read_packed_weights_as_they_lie(
    target: str, element: str, order: str, sizes: dict[str, int]
) -> None:
    """Strips, blocks and interleaved rows: nothing is copied, neither before the product nor for its kernel."""
    program = _contraction(element, 64, order, sizes)
    text = remarks_of(program, target)
    assert "copy of" not in text
    assert "nothing packed" in text
    assert validate(program, target, runs=1) == []


def test_many_packed_matrices_are_read_in_place() -> None:
    """Of the random programs, a third at least has no copy of the packed matrix."""
    assert sum("%b.buf" not in _lowered(seed, "avx512") for seed in range(30)) >= 10
