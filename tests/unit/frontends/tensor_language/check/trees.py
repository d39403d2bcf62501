"""Programs with one error each that the grammar rules out: built, not parsed."""

from __future__ import annotations

from typing import Any, Final, cast

from tlx.frontends.tensor_language.operations.blas import Axpby
from tlx.frontends.tensor_language.operations.control import If, Parallel, Yield
from tlx.frontends.tensor_language.operations.memory import Alloca, Expand
from tlx.frontends.tensor_language.operations.scalars import Cast, Comparison, Constant
from tlx.frontends.tensor_language.operations.subgroups import (
    Builtin,
    CooperativeMatrixConstruct,
    CooperativeMatrixLoad,
)
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Parameter,
    Program,
    Region,
    TypeRef,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    F32,
    I32,
    INDEX,
    CoopMatrixType,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
)

VECTOR: Final = MemrefType.packed(F32, (8,))
MATRIX: Final = MemrefType.packed(F32, (8, 4))
PARAMETERS: Final[dict[str, Type]] = {"p": BOOL, "f": F32, "n": INDEX, "A": VECTOR, "M": MATRIX}
HUGE: Final = 1 << 63


def instruction_in(*nodes: Instruction) -> Program:
    """A program with some instructions in its only function."""
    parameters = tuple(Parameter(name=Name(n), type=TypeRef(t)) for n, t in PARAMETERS.items())
    return Program([Function(name=Name("kernel"), parameters=parameters, body=Region(list(nodes)))])


def _parameter(type_: Type) -> Program:
    parameter = Parameter(name=Name("a"), type=TypeRef(type_))
    return Program([Function(name=Name("kernel"), parameters=(parameter,), body=Region())])


def _attributed(name: str, value: int) -> Program:
    entry = NamedAttribute(name, False, Attribute(value))
    attributes = Dictionary((entry,))
    return Program([Function(name=Name("kernel"), parameters=(), attributes=attributes, body=Region())])


_X: Final = (Name("x"),)
_OF_VECTOR: Final = (TypeRef(VECTOR),)
_CHOICE: Final = If(
    results=_X,
    types=_OF_VECTOR,
    condition=Name("p"),
    then=Region([Yield(values=(Name("A"),))]),
    otherwise=Region([Yield(values=(Name("A"),))]),
)
_LOAD: Final = CooperativeMatrixLoad(results=_X, types=(TypeRef(F32),), source=Name("M"), x=Name("n"), y=Name("n"))
_CONSTRUCT: Final = CooperativeMatrixConstruct(results=_X, types=(TypeRef(F32),), value=Name("f"))

TREES: Final[dict[str, tuple[Program, str]]] = {
    "unknown attribute": (
        _attributed("colour", 1),
        "there is no attribute colour: write a name of your own as a string",
    ),
    "attribute out of range": (
        Program(
            [
                Function(
                    name=Name("kernel"),
                    parameters=(),
                    attributes=Dictionary((NamedAttribute("mine", True, Attribute(-HUGE)),)),
                    body=Region(),
                )
            ]
        ),
        f"integers lie between -2^63+1 and 2^63-1, but this is {-HUGE}",
    ),
    "memref of bool": (
        _parameter(MemrefType.packed(BOOL, (4,))),
        "memref<boolx4>: elements of a memref must be numbers, not bool",
    ),
    "offset of a group": (
        _parameter(GroupType(VECTOR, 4, HUGE)),
        f"group<memref<f32x8>x4,offset:{HUGE}>: offset must be an integer of 64 bits or None, got {HUGE}",
    ),
    "extent": (
        _parameter(MemrefType.packed(F32, (HUGE,))),
        f"memref<f32x{HUGE}>: shape must be a tuple, each entry an integer of 64 bits or None, got ({HUGE},)",
    ),
    "scalar type": (
        _parameter(MemrefType.packed(ScalarType("f8", "float", 8), (4,))),
        "memref<f8x4>: there is no type f8",
    ),
    "address space": (
        _parameter(MemrefType(F32, (4,), (1,), cast("Any", "shared"))),
        "memref<f32x4,shared>: address_space must be 'global' or 'local', got 'shared'",
    ),
    "scope": (
        instruction_in(
            Parallel(
                body=Region(
                    [
                        CooperativeMatrixLoad(
                            source=Name("M"),
                            x=Name("n"),
                            y=Name("n"),
                            scope="device",
                            results=(Name("c"),),
                            types=(TypeRef(CoopMatrixType(F32, 16, 16, "matrix_acc")),),
                        )
                    ]
                )
            )
        ),
        "cooperative_matrix_load: memory scope and semantics are those of atomic accesses: set atomic",
    ),
    "modifier": (
        instruction_in(Axpby(alpha=Name("f"), a=Name("A"), beta=Name("f"), b=Name("A"), transpose=cast("Any", "T"))),
        "Axpby: transpose must be 'n' or 't', got 'T'; did you mean 't'?",
    ),
    "coopmatrix of bool": (
        instruction_in(
            Parallel(
                body=Region(
                    [
                        Constant(
                            results=_X,
                            types=(TypeRef(CoopMatrixType(BOOL, 16, 16, "matrix_acc")),),
                            value=True,
                        )
                    ]
                )
            )
        ),
        "coopmatrix<boolx16x16,matrix_acc>: components of a coopmatrix must be numbers, not bool",
    ),
    "if of memrefs": (
        instruction_in(_CHOICE),
        "if: only bool, numbers and coopmatrices are returned, not memref<f32x8>",
    ),
    "alloca of a scalar": (
        instruction_in(Alloca(results=_X, types=(TypeRef(F32),))),
        "alloca: the result must be a memref, not f32",
    ),
    "cast to a memref": (
        instruction_in(Cast(results=_X, types=_OF_VECTOR, operand=Name("f"))),
        "cast: the result must be a number or a coopmatrix, not memref<f32x8>",
    ),
    "comparison of another type": (
        instruction_in(Comparison(results=_X, types=(TypeRef(I32),), op="equal", lhs=Name("n"), rhs=Name("n"))),
        "equal: the result must be bool, not i32",
    ),
    "constant memref": (
        instruction_in(Constant(results=_X, types=_OF_VECTOR, value=1)),
        "constant: the result must be bool, a number or a coopmatrix, not memref<f32x8>",
    ),
    "builtin without component": (
        instruction_in(Builtin(results=_X, types=(TypeRef(INDEX),), name="group_id")),
        "group_id needs .x, .y or .z",
    ),
    "builtin with component": (
        instruction_in(Builtin(results=_X, types=(TypeRef(I32),), name="subgroup_size", component="x")),
        "subgroup_size has no .x, .y and .z",
    ),
    "expand to one mode": (
        instruction_in(Expand(results=_X, types=_OF_VECTOR, operand=Name("A"), mode=0, shape=(8,))),
        "expand: the new shape needs at least 2 entries",
    ),
    "coopmatrix load of a scalar": (
        instruction_in(Parallel(body=Region([_LOAD]))),
        "cooperative_matrix_load: the result must be a coopmatrix, not f32",
    ),
    "coopmatrix of a scalar": (
        instruction_in(Parallel(body=Region([_CONSTRUCT]))),
        "cooperative_matrix_construct: the result must be a coopmatrix, not f32",
    ),
}
