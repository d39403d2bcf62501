"""The table: names, typing rules, meanings, and that pages and examples agree with it."""

import re
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.architecture.tree import ROOT
from tlx.intrinsics import INTRINSICS, Intrinsic, Operand, OperandKind, RuleError, lookup, reference
from tlx.intrinsics.numpy_types import Array, dtype_of, type_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.parser.module import parse
from tlx.ir.tensors.inference import verify_tensors
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I8, I16, I32, I64, Type
from tlx.lower.legalize.math import VECTOR_FUNCTIONS
from tlx.lower.to_2d.rules.products import PRODUCT_RULES

ARGUMENTS = "define void @f(<{count} x {element}> %v, ptr %p, ptr %q) {{\n{example}\n  ret void\n}}\n"


def row(name: str) -> Intrinsic:
    result = lookup(f"llvm.tensor.{name}")
    assert result is not None
    return result


def dense(*extents: int, element: Type = FLOAT) -> TensorType:
    return TensorType.dense(element, extents)


def meaning(
    name: str, arrays: list[Array], *dims: tuple[int, ...], dtype: Any = np.float32, scalars: list[Array] | None = None
) -> Array:
    return row(name).meaning(arrays, dims, scalars or [], np.dtype(dtype))


@pytest.mark.parametrize(
    ("callee", "name"),
    [
        ("llvm.tensor.matmul", "matmul"),
        ("llvm.tensor.matmul.v9f32", "matmul"),
        ("llvm.tensor.load.p0i8.v2i32.v2i32.v2i32.v2i32", "load"),
        ("llvm.tensor.reshape.block.v4f32", "reshape.block"),
        ("llvm.tensor.mma.v9i32", "smma"),
        ("llvm.vector.totensor.v4f32.v1i32", "totensor"),
        ('"llvm.tensor.store"', "store"),
    ],
)
def test_lookup_finds_any_spelling(callee: str, name: str) -> None:
    actual = lookup(callee)
    assert actual is not None
    assert actual.name == name


@pytest.mark.parametrize(
    "callee", ["llvm.tensor.reshape", "llvm.tensor", "llvm.tensor.matmuls", "llvm.vector.matmul", "llvm.fma.v4f32", ""]
)
def test_lookup_finds_nothing_else(callee: str) -> None:
    assert lookup(callee) is None


def test_names_are_unique_and_documented() -> None:
    names = [r.full_name for r in INTRINSICS]
    assert len(set(names)) == len(names)
    for r in INTRINSICS:
        assert r.doc.endswith(".")
        assert r.meaning.__doc__


@pytest.mark.parametrize("intrinsic", INTRINSICS, ids=lambda r: r.full_name)
def test_example_verifies(intrinsic: Intrinsic) -> None:
    verify_tensors(parse(example(intrinsic.example)))


def example(text: str) -> str:
    """A function around an example; the type of its %v is the one that the example uses."""
    match = re.search(r"<(\d+) x (\w+)> %v", text)
    count, element = match.groups() if match else ("1", "i8")
    return ARGUMENTS.format(count=count, element=element, example=text)


def test_reference_pages_are_up_to_date() -> None:
    folder = ROOT / "docs/ir/intrinsics"
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    assert written == reference.pages(), "run: python -m tlx.intrinsics.reference docs/ir/intrinsics"


def test_reference_is_written(tmp_path: Any) -> None:
    assert reference.main([str(tmp_path / "pages")]) == 0
    assert (tmp_path / "pages" / "llvm.tensor.matmul.md").exists()
    assert reference.main([]) == 2


def test_functions_and_products_have_code() -> None:
    assert {r.name for r in INTRINSICS if r.is_function} == set(VECTOR_FUNCTIONS)
    assert {r.name for r in INTRINSICS if r.is_product} == set(PRODUCT_RULES)


def test_importing_the_table_does_not_import_numpy() -> None:
    code = "import sys, tlx.intrinsics; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# Rules -------------------------------------------------------------------------------------------------------------


def test_matmul_result_is_row_major_and_may_keep_padding() -> None:
    lhs = TensorType(FLOAT, (5, 4), (1, 0), (1, 1))  # stored column-major: logically 3 x 4, one padding row and column
    rhs = dense(4, 2)
    unpadded, padded = row("matmul").infer([lhs, rhs], (), FLOAT)
    assert unpadded == dense(3, 2)
    assert padded == TensorType(FLOAT, (4, 2), (0, 1), (1, 0))


def test_matmul_padding_subsets_come_last() -> None:
    lhs = TensorType(FLOAT, (4, 4), (0, 1), (1, 0))
    rhs = TensorType(FLOAT, (4, 6), (0, 1), (0, 2))
    results = row("matmul").infer([lhs, rhs], (), FLOAT)
    assert [r.padding for r in results] == [(0, 0), (1, 2), (1, 0), (0, 2)]
    assert {r.extents for r in results} == {(3, 4)}


@pytest.mark.parametrize(
    ("operand", "result", "fits"),
    [(I8, I32, True), (BFLOAT, FLOAT, True), (I32, I32, True), (HALF, BFLOAT, False), (I64, I32, False)],
)
def test_operands_extend_to_the_result(operand: Type, result: Type, fits: bool) -> None:
    tensors = [dense(2, 2, element=operand)] * 2
    if fits:
        assert row("matmul").infer(tensors, (), result) == [dense(2, 2, element=result)]
        return
    with pytest.raises(RuleError, match="do not extend"):
        row("matmul").infer(tensors, (), result)


def test_transpose_moves_shape_layout_and_padding() -> None:
    tensor = TensorType(FLOAT, (16, 5, 3), (0, 1, 2), (3, 2, 1))
    assert row("transpose").infer([tensor], ((2, 0, 1),), FLOAT) == [
        TensorType(FLOAT, (3, 16, 5), (2, 0, 1), (1, 3, 2))
    ]
    assert row("transpose").infer([tensor], (), FLOAT) == [TensorType(FLOAT, (16, 3, 5), (0, 2, 1), (3, 1, 2))]


def test_broadcast_keeps_padding_of_what_does_not_stretch() -> None:
    tensor = TensorType(FLOAT, (3, 4), (0, 1), (2, 1))  # logically 1 x 3
    results = row("broadcast").infer([tensor], ((5, 7, 3), (1, 2)), FLOAT)
    assert [r.padding for r in results] == [(0, 0, 0), (0, 0, 1)]


def test_block_rounds_up() -> None:
    tensor = TensorType(FLOAT, (4, 5), (0, 1), (1, 0))
    results = row("reshape.block").infer([tensor], ((1,), (4,)), FLOAT)
    assert [r.shape for r in results] == [(3, 2, 4), (4, 2, 4)]


OPERATIONS = [r for r in INTRINSICS if r.result == "vector"]


@pytest.mark.parametrize("intrinsic", OPERATIONS, ids=lambda r: r.name)
def test_accepted_types_have_a_meaning(intrinsic: Intrinsic) -> None:
    """Random operands: a RuleError, or results that all have the extents of what is computed."""
    rng = np.random.default_rng(11)
    accepted = 0
    for _ in range(800):
        form = intrinsic.forms[int(rng.integers(len(intrinsic.forms)))]
        element = (I8, I32, FLOAT)[int(rng.integers(3))]
        rank = int(rng.integers(1, 4))
        tensors = [random_tensor(rng, element, rank) for o in form if o.kind is OperandKind.TENSOR]
        dims = [
            random_dims(rng, operand, rank) for operand in form if operand.kind in (OperandKind.DIMS, OperandKind.INDEX)
        ]
        scalars = [np.array(1, dtype_of(element)) for operand in form if operand.kind is OperandKind.SCALAR]
        try:
            results = intrinsic.infer(tensors, dims, element)
        except RuleError:
            continue
        accepted += 1
        arrays = [np.ones(tensor.extents, dtype_of(element)) for tensor in tensors]
        computed = intrinsic.meaning(arrays, dims, scalars, dtype_of(element))
        assert {result.extents for result in results} == {computed.shape}
        assert computed.dtype == dtype_of(element)
    assert accepted


def random_tensor(rng: np.random.Generator, element: Type, rank: int) -> TensorType:
    """A tensor whose rank is another one now and then."""
    rank = rank if rng.random() < 0.9 else int(rng.integers(1, 4))
    padding = tuple(int(p) for p in rng.integers(0, 2, rank))
    shape = tuple(int(e) + p for e, p in zip(rng.integers(1, 4, rank), padding, strict=True))
    return TensorType(element, shape, tuple(int(d) for d in rng.permutation(rank)), padding)


def random_dims(rng: np.random.Generator, operand: Operand, rank: int) -> tuple[int, ...]:
    if operand.kind is OperandKind.INDEX:
        return (int(rng.integers(-1, rank + 1)),)
    if rng.random() < 0.3:
        return tuple(int(d) for d in rng.permutation(rank))
    low = -1 if rng.random() < 0.2 else 0
    return tuple(int(n) for n in rng.integers(low, 4, rank if rng.random() < 0.6 else int(rng.integers(1, 4))))


# Meanings ----------------------------------------------------------------------------------------------------------


def test_matmul_extends_and_wraps() -> None:
    lhs, rhs = np.array([[100, -100]], np.int8), np.array([[100], [100]], np.int8)
    assert meaning("matmul", [lhs, lhs.T], dtype=np.int32).tolist() == [[20000]]
    assert meaning("matmul", [lhs, rhs], dtype=np.int8).tolist() == [[0]]
    assert meaning("matmul", [lhs[:, :1], rhs[:1]], dtype=np.int8).tolist() == [[16]]


def test_matmul_of_bfloat_accumulates_in_float() -> None:
    ones, twos = np.full((1, 512), 1, ml_dtypes.bfloat16), np.full((512, 1), 2, ml_dtypes.bfloat16)
    assert meaning("matmul", [ones, twos]).tolist() == [[1024.0]]


@pytest.mark.parametrize(
    ("name", "expected"), [("umma", 255 * 255 + 1), ("smma", 2), ("usmma", 1 - 255), ("summa", 1 - 255)]
)
def test_mma_reads_signs_by_name(name: str, expected: int) -> None:
    one, minus = np.array([[1]], np.int32), np.array([[-1]], np.int8)
    assert meaning(name, [one, minus, minus], dtype=np.int32).tolist() == [[expected]]


def test_i1_arithmetic_is_modulo_two() -> None:
    bits = np.array([[True, True, True]])
    assert meaning("matmul", [bits, bits.T], dtype=np.bool_).tolist() == [[True]]
    assert meaning("matmul", [bits, bits.T], dtype=np.int32).tolist() == [[3]]
    assert meaning("umma", [np.array([[1]], np.int32), bits, bits.T], dtype=np.int32).tolist() == [[4]]
    assert meaning("summa", [np.array([[1]], np.int32), bits, bits.T], dtype=np.int32).tolist() == [[-2]]


def test_broadcast() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert meaning("broadcast", [x], scalars=[np.array(2.0, np.float32)]).tolist() == [[2.0, 2.0]] * 3
    swapped = meaning("broadcast", [x], (2, 4, 3), (2, 0))
    assert swapped.shape == (2, 4, 3)
    for position in np.ndindex(2, 4, 3):
        assert swapped[position] == x[position[2], position[0]]
    assert meaning("broadcast", [x[:1]], (3, 2), (0, 1)).tolist() == [[0.0, 1.0]] * 3


def test_block_is_nchw16c() -> None:
    x = np.arange(2 * 5 * 3).reshape(2, 5, 3)
    blocked = meaning("reshape.block", [x], (1,), (4,))
    assert blocked.shape == (2, 2, 3, 4)
    for n, c, w in np.ndindex(2, 8, 3):
        assert blocked[n, c // 4, w, c % 4] == (x[n, c, w] if c < 5 else 0)


def test_block_nests_in_list_order() -> None:
    """`OI4i16o4i`: of the two blocks of one dimension, the later is the inner one."""
    x = np.arange(20 * 30).reshape(20, 30)
    blocked = meaning("reshape.block", [x], (1, 0, 1), (4, 16, 4))
    assert blocked.shape == (2, 2, 4, 16, 4)
    for o, i in np.ndindex(20, 30):
        assert blocked[o // 16, i // 16, i // 4 % 4, o % 16, i % 4] == x[o, i]
    assert blocked.sum() == x.sum()
    (result,) = row("reshape.block").infer([dense(20, 30)], ((1, 0, 1), (4, 16, 4)), FLOAT)
    assert result.shape == blocked.shape


def test_permute_undoes_vnni_packing() -> None:
    b = np.arange(16 * 6).reshape(16, 6)
    packed = b.reshape(8, 2, 6).transpose(0, 2, 1)
    assert (meaning("reshape.permute", [packed], (0, 2, 1), (16, 6)) == b).all()


@pytest.mark.parametrize("type_", [I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT])
def test_dtypes_round_trip(type_: Type) -> None:
    assert type_of(dtype_of(type_)) == type_


def test_unsigned_and_unknown_dtypes() -> None:
    assert type_of(np.dtype(np.uint8)) == I8
    with pytest.raises(ValueError, match="no LLVM type"):
        type_of(np.dtype(np.complex64))
