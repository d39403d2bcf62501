"""Small pieces that kernels are built of: tile types, conversions of tile vectors, the kernel function itself."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.builder import new_function
from tlx.ir.module import Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, FloatType, IntType, Type, VectorType, bits_of
from tlx.ir.values import Value, const_ints
from tlx.lower.stage import KERNEL, VERSION
from tlx.lower.to_tiles.share import PART, share_parameters
from tlx.target import Sign, Target
from tlx.types import TensorType


def tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A row-major tile."""
    return TensorType(element, (rows, cols), (0, 1), padding)


def column_tile(element: Type, rows: int, cols: int, padding: tuple[int, int] = (0, 0)) -> TensorType:
    """A column-major tile of `rows` x `cols` (its shape is listed in memory order: columns first)."""
    return TensorType(element, (cols, rows), (1, 0), (padding[1], padding[0]))


def convert(b: TensorBuilder, value: Value, element: Type, sign: Sign) -> Value:
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
    name = module.global_names.fresh(f"{stem}{version}{PART if parts else ''}")
    spelled = [(module.pointer_to(element), attributes, parameter) for parameter, element, attributes in parameters]
    own = share_parameters(module, keeps=keeps) if parts else ()
    spelled += [(type_, "", parameter) for parameter, type_ in (*scalars, *own)]
    features = f' "target-features"="{",".join(target.features)}"' if target.features else ""
    features += f' "{VERSION}"="{target.name}"' if target.level else ""
    return new_function(module, name, spelled, f'nounwind noinline "{KERNEL}"="tiles"{features}')
