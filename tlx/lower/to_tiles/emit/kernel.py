"""What every kernel is built of: its function and parameters, tile types, conversions, conditional blocks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block
from tlx.ir.module import Module
from tlx.ir.types import I8, I16, I64, FloatType, IntType, Type, VectorType, bits_of
from tlx.ir.values import Keyword, Value, const_int, const_ints
from tlx.lower.context import STAGE_ATTRIBUTE, TARGET_ATTRIBUTE
from tlx.lower.to_tiles.parallel.tile_range import PART_SUFFIX, tile_range_parameters
from tlx.lower.to_tiles.problem.expression import Expression, MatrixLeaf, scalar_parameter_type
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.target.hardware import Sign
from tlx.target.target import Target


def tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A row-major tile."""
    return TensorType(element, (rows, cols), (0, 1), padding)


def column_tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A column-major tile of `rows` x `cols` (its shape is listed in memory order: columns first)."""
    return TensorType(element, (cols, rows), (1, 0), (padding[1], padding[0]))


def convert_tile(b: TensorBuilder, value: Value, element: Type, sign: Sign) -> Value:
    """A flattened tile with its elements converted; integers are widened by `sign`."""
    type_ = value.type
    if not isinstance(type_, VectorType) or type_.element == element:
        return value
    to = VectorType(type_.count, element)
    source = type_.element
    narrower = bits_of(element) < bits_of(source)
    if isinstance(source, FloatType) and isinstance(element, FloatType):
        return b.cast("fptrunc" if narrower else "fpext", value, to)
    if isinstance(source, IntType) and isinstance(element, IntType):
        widen = "zext" if sign == "u" else "sext"
        return b.cast("trunc" if narrower else widen, value, to)
    msg = f"no conversion from {source} to {element}"
    raise TypeError(msg)


def flip_sign_bit(b: TensorBuilder, value: Value) -> Value:
    """Bytes xor 0x80: s8 as u8 plus 128, and u8 as s8 minus 128."""
    type_ = value.type
    if not isinstance(type_, VectorType):
        msg = f"no vector: {type_}"
        raise TypeError(msg)
    return b.binary("xor", value, const_ints(I8, [-128] * type_.count))


def new_kernel(
    module: Module,
    target: Target,
    stem: str,
    parameters: Sequence[tuple[str, Type, str]],
    scalars: Sequence[tuple[str, Type]] = (),
    *,
    parts: bool = False,
    keeps: bool = False,
) -> Function:
    """An internal function on pointers, to hold tile code.

    Args:
        module: Where it is added.
        target: The machine it is for, whose features it carries.
        stem: Its name, made unique.
        parameters: Name, element type and attributes of each pointer parameter.
        scalars: Name and type of each parameter behind them that is a number.
        parts: Whether it works on a part of its tiles, whose bounds are its last parameters.
        keeps: Whether parameters behind these say what panels of B stay from one call to the next.
    """
    version = f".{target.name}" if target.level else ""
    name = module.global_names.fresh(f"{stem}{version}{PART_SUFFIX if parts else ''}")
    spelled = [(module.pointer_to(element), attributes, parameter) for parameter, element, attributes in parameters]
    own = tile_range_parameters(module, keeps=keeps) if parts else ()
    spelled += [(type_, "", parameter) for parameter, type_ in (*scalars, *own)]
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    features += f' "{TARGET_ATTRIBUTE}"="{target.name}"' if target.level else ""
    return new_function(module, name, spelled, f'nounwind noinline "{STAGE_ATTRIBUTE}"="tiles"{features}')


def expression_parameters(value: Expression) -> tuple[list[tuple[str, Type, str]], list[tuple[str, Type]]]:
    """Parameters of a kernel for the leaves and for the scalars of an expression."""
    elements = {leaf.pointer: leaf.element for leaf in value.leaves()}
    pointers = [(f"x{number}", elements[number], "") for number in sorted(elements)]
    kinds = {scalar.number: scalar.element for scalar in value.scalars()}
    return pointers, [(f"s{number}", scalar_parameter_type(kinds[number])) for number in sorted(kinds)]


def may_alias_leaf(value: Expression, destination: MatrixView) -> bool:
    """Whether a leaf may lie where the destination does."""
    return bool(in_place_leaves(value, destination))


def in_place_leaves(value: Expression, destination: MatrixView) -> list[MatrixLeaf]:
    """The leaves that may lie where the destination does: they have the same elements at the same places."""
    to = destination.broadcast()
    leaves = [leaf for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return [leaf for leaf in leaves if _element_layout(leaf.view.broadcast()) == _element_layout(to)]


def _element_layout(view: MatrixView) -> tuple[int, int, int, int]:
    return view.rows, view.cols, view.row_stride, view.col_stride


@contextmanager
def if_block(b: Builder, condition: Value, name: str) -> Generator[None]:
    """What runs where a condition holds."""
    inside, behind = if_else_blocks(b, condition, (name, f"{name}.end"))
    b.at_end(inside)
    yield
    b.branch(behind)
    b.at_end(behind)


def if_else_blocks(b: Builder, condition: Value, names: tuple[str, str]) -> tuple[Block, Block]:
    """Blocks for a condition that holds, and for one that does not."""
    before = b.block
    then = b.new_block(names[0])
    otherwise = b.new_block(names[1], then)
    b.at_end(before)
    b.branch_if(condition, then, otherwise)
    return then, otherwise


def kernel_scalar(b: Builder, scalar: Value) -> Value:
    """A scalar as a kernel takes it."""
    if scalar_parameter_type(scalar.type) == scalar.type:
        return scalar
    one = VectorType(1, scalar.type)
    vector = b.insert_element(Keyword(one, "undef"), scalar, 0)
    return b.extract_element(b.cast("bitcast", vector, VectorType(1, I16)), 0)


def elements_to_boundary(b: TensorBuilder, address: Value, element: int, boundary: int) -> Value:
    """Elements of so many bytes from an address to the next one that is aligned to `boundary` elements."""
    bytes_behind = b.sub(const_int(I64, 0), b.cast("ptrtoint", address, I64))
    gap = b.binary("and", bytes_behind, const_int(I64, boundary * element - 1))
    return b.binary("lshr", gap, const_int(I64, element.bit_length() - 1))
