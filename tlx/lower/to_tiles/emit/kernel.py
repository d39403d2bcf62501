"""The functions that hold kernels: their names, parameters and attributes."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I16, Type, VectorType, bits_of
from tlx.ir.values import Keyword, Value
from tlx.lower.context import STAGE_ATTRIBUTE, TARGET_ATTRIBUTE
from tlx.lower.to_tiles.parallel.tile_range import PART_SUFFIX, tile_range_parameters
from tlx.lower.to_tiles.problem.expression import Expression, MatrixLeaf, scalar_parameter_type
from tlx.lower.to_tiles.problem.views import MatrixView
from tlx.target.target import Target


def new_kernel(
    module: Module,
    target: Target,
    stem: str,
    parameters: Sequence[tuple[str, Type, str]],
    scalars: Sequence[tuple[str, Type]] = (),
    *,
    parts: bool = False,
    caches_panels: bool = False,
) -> Function:
    """An internal function on pointers, to hold tile code.

    Args:
        module: Where it is added.
        target: The machine it is for, whose features it carries.
        stem: Its name, made unique.
        parameters: Name, element type and attributes of each pointer parameter.
        scalars: Name and type of each scalar parameter, after the pointers.
        parts: Whether it computes a range of its tiles, whose bounds are its last parameters.
        caches_panels: Whether further parameters describe a cache of packed panels of B across calls.
    """
    version = f".{target.name}" if target.level else ""
    name = module.global_names.fresh(f"{stem}{version}{PART_SUFFIX if parts else ''}")
    spelled = [(module.pointer_to(element), attributes, parameter) for parameter, element, attributes in parameters]
    own = tile_range_parameters(module, caches_panels=caches_panels) if parts else ()
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
    """Whether a leaf may alias the destination."""
    return bool(in_place_leaves(value, destination))


def in_place_leaves(value: Expression, destination: MatrixView) -> list[MatrixLeaf]:
    """The leaves that may be the destination itself: they have the same layout."""
    to = destination.broadcast()
    leaves = [leaf for leaf in value.leaves() if bits_of(leaf.element) == bits_of(to.element)]
    return [leaf for leaf in leaves if _element_layout(leaf.view.broadcast()) == _element_layout(to)]


def _element_layout(view: MatrixView) -> tuple[int, int, int, int]:
    return view.rows, view.cols, view.row_stride, view.col_stride


def kernel_scalar(b: Builder, scalar: Value) -> Value:
    """A scalar as it is passed to a kernel."""
    if scalar_parameter_type(scalar.type) == scalar.type:
        return scalar
    one = VectorType(1, scalar.type)
    vector = b.insert_element(Keyword(one, "undef"), scalar, 0)
    return b.extract_element(b.cast("bitcast", vector, VectorType(1, I16)), 0)
