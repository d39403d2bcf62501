"""Random syntax trees for properties of printer and parser: of every node class, right in syntax and without sense.

What a field holds follows from its annotation, so a new instruction is built without a line here; a field of a kind
that nothing here builds is an error.
"""

from __future__ import annotations

import string
import types
import typing
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from tlx.frontends.tensor_language.operations import OPERATIONS, control, memory, scalars, subgroups
from tlx.frontends.tensor_language.syntax.nodes import (
    ATTRIBUTE_NAMES,
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Program,
    Region,
    Slice,
    TypeRef,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    INDEX,
    NUMBERS,
    AddressSpace,
    CoopMatrixType,
    GroupType,
    MatrixUse,
    MemrefType,
)

_WORD = st.text(string.ascii_letters + string.digits + "_", max_size=6)
NAMES = st.one_of(
    st.tuples(st.sampled_from(string.ascii_letters), _WORD).map("".join).map(Name),
    st.text(string.digits, min_size=1, max_size=4).map(Name),
)
INTEGERS = st.one_of(st.integers(0, 64), st.integers(-(2**63) + 1, 2**63 - 1))
EXTENTS = st.one_of(st.none(), INTEGERS)
_SCALARS = st.sampled_from(list(NUMBERS.values()))
_SHAPES = st.lists(EXTENTS, max_size=4).map(tuple)
_MEMREFS = st.one_of(
    st.builds(MemrefType, _SCALARS, _SHAPES, _SHAPES, st.sampled_from(get_args(AddressSpace))),
    st.builds(MemrefType.packed, _SCALARS, st.lists(st.none() | st.integers(0, 64), max_size=4).map(tuple)),
)
_COOPMATRICES = st.builds(CoopMatrixType, _SCALARS, INTEGERS, INTEGERS, st.sampled_from(get_args(MatrixUse)))
_RETURNED = st.one_of(_SCALARS, st.just(BOOL), _COOPMATRICES)
TYPES = st.one_of(_RETURNED, _MEMREFS, st.builds(GroupType, _MEMREFS, EXTENTS, EXTENTS))

_STRINGS = st.text([c for c in map(chr, range(32, 127)) if c != '"'], max_size=8)
_FLAT_VALUES = st.one_of(st.booleans(), INTEGERS, _STRINGS)


def _dictionaries(values: st.SearchStrategy[Attribute]) -> st.SearchStrategy[Dictionary]:
    known = st.builds(NamedAttribute, st.sampled_from(ATTRIBUTE_NAMES), st.just(False), values)
    quoted = st.builds(NamedAttribute, _STRINGS, st.just(True), values)
    return st.lists(known | quoted, max_size=3).map(lambda entries: Dictionary(tuple(entries)))


ATTRIBUTES = st.recursive(
    st.builds(Attribute, _FLAT_VALUES),
    lambda inner: st.builds(Attribute, st.lists(inner, max_size=3).map(tuple) | _dictionaries(inner)),
    max_leaves=6,
)
DICTIONARIES = _dictionaries(ATTRIBUTES)

_FLOATS = st.floats(allow_nan=True, allow_infinity=True)
CONSTANTS = st.one_of(st.booleans(), INTEGERS, _FLOATS, st.builds(complex, _FLOATS, _FLOATS))

# What an instruction's result may be, where the grammar does not take any scalar or coopmatrix type.
_RESULT_TYPES: dict[type[Instruction], st.SearchStrategy[Any]] = {
    **dict.fromkeys((memory.Alloca, memory.Expand, memory.Fuse, memory.Subview), _MEMREFS),
    **dict.fromkeys((memory.Associated, scalars.Comparison), st.just(BOOL)),
    **dict.fromkeys((memory.AtomicLoad, memory.AtomicUpdate, scalars.Math), _SCALARS),
    **dict.fromkeys(
        (subgroups.CooperativeMatrixExtract, subgroups.SubgroupBroadcast, subgroups.SubgroupOperation), _SCALARS
    ),
    subgroups.Builtin: st.sampled_from([t for t in NUMBERS.values() if t.kind == "int"]),
    scalars.Cast: _SCALARS | _COOPMATRICES,
    memory.Load: _SCALARS | _MEMREFS,
    memory.Size: st.just(INDEX),
    **dict.fromkeys(
        (
            subgroups.CooperativeMatrixApply,
            subgroups.CooperativeMatrixLoad,
            subgroups.CooperativeMatrixAtomicUpdate,
            subgroups.CooperativeMatrixConstruct,
            subgroups.CooperativeMatrixInsert,
            subgroups.CooperativeMatrixMulAdd,
            subgroups.CooperativeMatrixReduce,
            subgroups.CooperativeMatrixScale,
        ),
        _COOPMATRICES,
    ),
    **dict.fromkeys((scalars.ArithBinary, scalars.ArithUnary, scalars.Constant), _RETURNED),
}
_WITHOUT_RESULT = {entry.node for entry in OPERATIONS.values() if entry.results == "none"}

_SLICES = st.builds(Slice, NAMES | INTEGERS, st.none() | NAMES | INTEGERS)


def instruction_classes() -> list[type[Instruction]]:
    """The classes of all operations."""
    return sorted({entry.node for entry in OPERATIONS.values()}, key=lambda v: v.__name__)


def _has_region(cls: type[Instruction]) -> bool:
    return any(hint is Region or Region in get_args(hint) for hint in get_type_hints(cls).values())


def _regions(depth: int) -> st.SearchStrategy[Region]:
    return st.lists(instructions(depth - 1), max_size=2).map(Region)


def _field(annotation: Any, depth: int) -> st.SearchStrategy[Any]:
    """What a field with an annotation may hold."""
    origin = get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(_field(a, depth) for a in get_args(annotation)))
    if origin is typing.Literal:
        return st.sampled_from(get_args(annotation))
    if origin is tuple:
        item, _ellipsis = get_args(annotation)
        return st.lists(_field(item, depth), min_size=1, max_size=3).map(tuple)
    if annotation is Region:
        return _regions(depth)
    return {
        Name: NAMES,
        int: INTEGERS,
        bool: st.booleans(),
        type(None): st.none(),
        Dictionary: DICTIONARIES,
        Slice: _SLICES,
    }[annotation]


# Fields whose values depend on other fields, or on more than their annotation.
_SPECIAL: dict[tuple[type[Instruction], str], st.SearchStrategy[Any]] = {
    (scalars.Constant, "value"): CONSTANTS,
    **{
        (c, "indices"): st.lists(NAMES, max_size=3).map(tuple)
        for c in (memory.Load, memory.Store, memory.AtomicLoad, memory.AtomicStore, memory.AtomicUpdate)
    },
    (control.Yield, "values"): st.lists(NAMES, max_size=3).map(tuple),
    (memory.Subview, "slices"): st.lists(_SLICES, max_size=3).map(tuple),
    (memory.Expand, "shape"): st.lists(NAMES | INTEGERS, min_size=2, max_size=4).map(tuple),
}


def _mended(node: Instruction) -> Instruction:
    """The tree with what its fields demand of each other."""
    if isinstance(node, subgroups.Builtin):
        with_component = node.name in ("group_id", "num_groups", "num_subgroups", "subgroup_id")
        node.component = (node.component or "y") if with_component else None
    if isinstance(node, control.For):
        node.carried, node.initial = node.carried[: len(node.initial)], node.initial[: len(node.carried)]
        if not node.types:
            node.carried = node.initial = ()
    if isinstance(node, subgroups.CooperativeMatrixLoad | subgroups.CooperativeMatrixStore) and not node.atomic:
        node.scope, node.semantics = "work_group", "relaxed"
    return node


def instructions_of(cls: type[Instruction], depth: int = 1) -> st.SearchStrategy[Instruction]:
    """Trees of one class.

    Args:
        cls: The class.
        depth: Levels of regions that its regions may hold instructions on.
    """
    hints = get_type_hints(cls)
    built = {f.name: _SPECIAL.get((cls, f.name)) for f in fields(cls) if f.name not in ("results", "types", "span")}
    strategies = {name: _field(hints[name], depth) if given is None else given for name, given in built.items()}
    if cls in (control.For, control.If):
        strategies["results"] = st.lists(NAMES, max_size=3).map(tuple)
        strategies["types"] = st.lists(_RETURNED.map(TypeRef), max_size=3).map(tuple)
    elif cls not in _WITHOUT_RESULT:
        strategies["results"] = st.tuples(NAMES)
        strategies["types"] = st.tuples(_RESULT_TYPES[cls].map(TypeRef))
    return st.builds(cls, **strategies).map(_mended)


def instructions(depth: int) -> st.SearchStrategy[Instruction]:
    """Trees of any class; those with regions up to a depth."""
    classes = [c for c in instruction_classes() if depth > 0 or not _has_region(c)]
    return st.deferred(lambda: st.one_of(*(instructions_of(c, depth) for c in classes)))


PARAMETERS = st.builds(Parameter, name=NAMES, type=TYPES.map(TypeRef), attributes=DICTIONARIES)
FUNCTIONS = st.builds(
    Function,
    name=NAMES,
    parameters=st.lists(PARAMETERS, max_size=3).map(tuple),
    attributes=DICTIONARIES,
    body=st.lists(instructions(2), max_size=4).map(Region),
)
PROGRAMS = st.builds(Program, st.lists(FUNCTIONS, max_size=2))
