"""Operations of subgroups: builtins, scans, reductions, broadcasts, and cooperative matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.operations.context import ExtentOperand, FunctionCheck
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.operations.core import (
    MEMORY,
    UPDATES,
    AtomicAccess,
    Modifier,
    Transpose,
    TypeOf,
    UpdateOp,
    always,
    element_of,
    mnemonic,
    operation,
    operation_of,
    same_as,
    spelt,
    transpose,
)
from tlx.frontends.tensor_language.operations.memory import check_order, check_update
from tlx.frontends.tensor_language.operations.scalars import cast_problem
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.forms import (
    arrow,
    body,
    bracketed,
    comma,
    integer,
    mark,
    operand,
    operands,
    position,
    result,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.syntax.productions import coopmatrix_type, integer_type, number_type
from tlx.frontends.tensor_language.types import (
    I32,
    INDEX,
    CoopMatrixType,
    MemrefType,
    ScalarType,
    Type,
    promotable,
    promote,
)
from tlx.frontends.tensor_language.work_items import UNIFORM, Spread, constant_spread, lane_spread

BuiltinName = Literal[
    "group_id", "num_groups", "num_subgroups", "subgroup_size",
    "subgroup_id", "subgroup_linear_id", "subgroup_local_id",
]  # fmt: skip
Component = Literal["x", "y", "z"]
ScanKind = Literal["exclusive_scan", "inclusive_scan", "reduce"]

_COMPONENT: Final = Modifier("component", get_args(Component), None, is_required=True, is_named=True)
_TYPE: Final = result(integer_type)


@operation(
    spelt("{name}", name=("subgroup_linear_id", "subgroup_local_id")), _TYPE, modifiers=(), region="spmd",
    gives=always(I32),
)  # fmt: skip
@operation(spelt("{name}", name=("subgroup_id",)), _TYPE, modifiers=(_COMPONENT,), region="spmd", gives=always(I32))
@operation(spelt("{name}", name=("subgroup_size",)), _TYPE, modifiers=(), gives=always(I32))
@operation(spelt("{name}", name=("num_subgroups",)), _TYPE, modifiers=(_COMPONENT,), gives=always(I32))
@operation(spelt("{name}", name=("group_id", "num_groups")), _TYPE, modifiers=(_COMPONENT,), gives=always(INDEX))
@dataclass(kw_only=True, slots=True)
class Builtin(Instruction):
    """`%r = group_id.x : index` and the like; the `subgroup_id`s exist in SPMD regions only."""

    name: BuiltinName
    component: Component | None = None


@operation(
    "subgroup_broadcast", *operands(value="the value", lane="the work-item's number"), result(number_type),
    region="spmd", gives=same_as("value"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupBroadcast(Instruction):
    """`%r = subgroup_broadcast %value, %lane : type`."""

    value: Name
    lane: Name


@operation(
    spelt("subgroup_{kind}_{op}", kind=get_args(ScanKind), op=UPDATES), operand("value", "the value"),
    result(number_type), region="spmd", gives=same_as("value"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupOperation(Instruction):
    """`%r = subgroup_inclusive_scan_add %value : type` and the like."""

    kind: ScanKind
    op: UpdateOp
    value: Name


Checked = Literal["rows_checked", "cols_checked", "both_checked"]
ReduceMode = Literal["row", "column"]


def _scope_hint(c: Cursor, word: str) -> str:
    """A hint that a modifier belongs to the atomic form."""
    atomic = c.keyword.replace("matrix_", "matrix_atomic_")
    return f"'{atomic}' has it" if any(word in slot.words for slot in MEMORY) else ""


_ACCESS: Final = (transpose(), Modifier("checked", get_args(Checked), None))
_ATOMIC_ACCESS: Final = (*_ACCESS, *MEMORY)
_MATRIX: Final = operand("matrix", "the matrix")
_INDEX: Final = bracketed("index", "the component's number")
_READ: Final = (operand("source", "the memref"), *position(), result(coopmatrix_type))
_WRITE: Final = (*operands(matrix="the matrix", destination="the memref"), *position())


def _type_of_reduce(node: CooperativeMatrixReduce, type_of: TypeOf) -> Type | None:
    type_ = type_of(node.matrix)
    return type_.reduced(node.mode) if isinstance(type_, CoopMatrixType) else None


@operation(
    "cooperative_matrix_apply", mark("(", "and the names of row, column and value"),
    *operands(row="the name of the row", column="the name of the column", value_name="the name of the value"),
    mark(")", "after the names of row, column and value"), mark("=", "and the matrix"), _MATRIX,
    arrow(coopmatrix_type), body(), region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixApply(Instruction):
    """`%r = cooperative_matrix_apply (%row,%column,%value)=%matrix -> type { ... }`."""

    row: Name
    column: Name
    value_name: Name
    matrix: Name
    body: Region


@dataclass(kw_only=True, slots=True)
class MatrixAccess(AtomicAccess):
    """Base of the instructions that read or write a matrix at `%memref[%x,%y]`.

    Attributes:
        transpose: Whether rows of the matrix run along the second mode of the memref.
        checked: Which bounds are checked, None for none.
    """

    transpose: Transpose = "n"
    checked: Checked | None = None
    x: Name
    y: Name


@operation(spelt("cooperative_matrix_atomic_load", atomic=(True,)), *_READ, modifiers=_ATOMIC_ACCESS, region="spmd")
@operation(
    spelt("cooperative_matrix_load", atomic=(False,)), *_READ, modifiers=_ACCESS, hint=_scope_hint, region="spmd"
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixLoad(MatrixAccess):
    """`%r = cooperative_matrix_load[.t|.n][.X_checked] %memref[%x,%y] : type`; atomic with scope and semantics."""

    source: Name
    atomic: bool = False


@operation(
    spelt("cooperative_matrix_atomic_store", atomic=(True,)), *_WRITE, modifiers=_ATOMIC_ACCESS, results="none",
    writes="destination", region="spmd",
)  # fmt: skip
@operation(
    spelt("cooperative_matrix_store", atomic=(False,)), *_WRITE, modifiers=_ACCESS, hint=_scope_hint, results="none",
    writes="destination", region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixStore(MatrixAccess):
    """`cooperative_matrix_store[.t|.n][.X_checked] %matrix, %memref[%x,%y]`; atomic with scope and semantics."""

    matrix: Name
    destination: Name
    atomic: bool = False


@operation(
    spelt("cooperative_matrix_atomic_{op}", op=UPDATES), *_WRITE, result(coopmatrix_type), modifiers=_ATOMIC_ACCESS,
    writes="destination", region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixAtomicUpdate(MatrixAccess):
    """`%old = cooperative_matrix_atomic_add[...] %matrix, %memref[%x,%y] : type`."""

    op: UpdateOp
    matrix: Name
    destination: Name


@operation("cooperative_matrix_construct", operand("value", "the value"), result(coopmatrix_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixConstruct(Instruction):
    """`%r = cooperative_matrix_construct %value : type`."""

    value: Name


@operation(
    "cooperative_matrix_extract", _MATRIX, _INDEX, result(number_type), region="spmd", gives=element_of("matrix")
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixExtract(Instruction):
    """`%r = cooperative_matrix_extract %matrix[index] : type`: a component of the work-item's vector."""

    matrix: Name
    index: int


@operation(
    "cooperative_matrix_insert", *operands(value="the value", matrix="the matrix"), _INDEX, result(coopmatrix_type),
    region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixInsert(Instruction):
    """`%r = cooperative_matrix_insert %value, %matrix[index] : type`."""

    value: Name
    matrix: Name
    index: int


@operation("cooperative_matrix_mul_add", *operands(a="A", b="B", c="C"), result(coopmatrix_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixMulAdd(Instruction):
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`: `D := A B + C`."""

    a: Name
    b: Name
    c: Name


@operation(
    "cooperative_matrix_prefetch", integer("level", "the cache level"), comma("the memref"),
    operand("source", "the memref"), *position(), comma("the number of rows"), integer("rows", "the number of rows"),
    comma("the number of columns"), integer("columns", "the number of columns"), results="none", region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixPrefetch(Instruction):
    """`cooperative_matrix_prefetch level, %memref[%x,%y], rows, columns`."""

    level: int
    source: Name
    x: Name
    y: Name
    rows: int
    columns: int


@operation(
    spelt("cooperative_matrix_reduce_{op}", op=UPDATES), _MATRIX, result(coopmatrix_type),
    modifiers=(Modifier("mode", get_args(ReduceMode), "row", is_required=True),), region="spmd", gives=_type_of_reduce,
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixReduce(Instruction):
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`; `.row` gives M x 1, `.column` 1 x N."""

    op: UpdateOp
    mode: ReduceMode
    matrix: Name


@operation(
    "cooperative_matrix_scale",
    *operands(scalar="the scalar", matrix="the matrix"),
    result(coopmatrix_type),
    region="spmd",
    gives=same_as("matrix"),
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixScale(Instruction):
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""

    scalar: Name
    matrix: Name


def components(type_: CoopMatrixType, subgroup_size: int) -> int:
    """Components that each work-item holds.

    With `I = min(M,S)` rows, `J = ceil(I N / S) S / I` columns and `K = M / I` blocks of rows, `V = I J K / S`.
    """
    side = min(type_.rows, subgroup_size)
    return -(-type_.rows // side) * -(-side * type_.columns // subgroup_size)


def check_apply(context: FunctionCheck, node: CooperativeMatrixApply) -> None:
    """The result has the type of the matrix; the region yields one component."""
    type_ = context.matrix(node, node.matrix)
    if type_:
        context.check_result(node, f"the type of {node.matrix}")
    result = node.types[0].type
    type_ = type_ or (result if isinstance(result, CoopMatrixType) else None)
    component = type_.component if type_ else None
    variables = ((node.row, I32, _spread_of_rows(context, type_)), (node.column, I32, None))
    context.region(
        node.body,
        node,
        variables=(*variables, (node.value_name, component, None)),
        yields=(component,),
        distributed=node,
    )
    last = node.body.instructions[-1] if node.body.instructions else None
    if not isinstance(last, Yield):
        message = f"the body of {mnemonic(node)} must end with yield of 1 value: {component or 'the component'}"
        context.error(message, last.span if last and last.span else node.body.span or node.span)


def _spread_of_rows(context: FunctionCheck, type_: CoopMatrixType | None) -> Spread | None:
    """If there are at least as many rows as work-items, each work-item has a different row."""
    if type_ is None or type_.rows < context.subgroup_size:
        return None
    return lane_spread(context.subgroup_size, exact=False)


def _check_atomic(context: FunctionCheck, node: CooperativeMatrixLoad | CooperativeMatrixStore, access: str) -> None:
    if node.atomic:
        check_order(context, node, access, node.semantics)
    elif (node.scope, node.semantics) != ("work_group", "relaxed"):  # built by a program; the parser never produces it
        message = "memory scope and semantics are those of atomic accesses: set atomic"
        context.error(f"{mnemonic(node)}: {message}", node.span)


def check_load(context: FunctionCheck, node: CooperativeMatrixLoad) -> None:
    """`order(M) = 2`, `component_type(A) = element_type(M)`."""
    _check_atomic(context, node, "load")
    source, result = check_block(context, node, node.source, node.x, node.y), node.types[0]
    if not isinstance(result.type, CoopMatrixType):
        context.error(f"{mnemonic(node)}: the result must be a coopmatrix, not {result}", result.span)
    elif source and result.type.component != source.element:
        message = (
            f"{mnemonic(node)}: the components of {result} have type {result.type.component}, but the elements of "
            f"{node.source} have type {source.element}; cast after loading"
        )
        context.error(message, result.span, *context.notes(node.source))


def check_store(context: FunctionCheck, node: CooperativeMatrixStore) -> None:
    """`component_type(A) = element_type(M)`."""
    _check_atomic(context, node, "store")
    _check_write(context, node, node.matrix, node.destination, node.x, node.y)


def check_atomic_update(context: FunctionCheck, node: CooperativeMatrixAtomicUpdate) -> None:
    """As `store`; the result is the old entries."""
    type_ = _check_write(context, node, node.matrix, node.destination, node.x, node.y)
    if type_:
        check_update(context, node, node.op, node.matrix, type_.component)
        context.check_result(node, f"the type of {node.matrix}, as the old entries are returned")


def _check_write(
    context: FunctionCheck, node: Instruction, name: Name, memory: Name, x: Name, y: Name
) -> CoopMatrixType | None:
    type_, destination = context.matrix(node, name), check_block(context, node, memory, x, y)
    if type_ and destination and type_.component != destination.element:
        message = (
            f"the components of {name} have type {type_.component} but the elements of {memory} have type "
            f"{destination.element}; cast the coopmatrix"
        )
        context.report_operand(node, name, message, name, memory)
    return type_


def check_block(context: FunctionCheck, node: Instruction, name: Name, x: Name, y: Name) -> MemrefType | None:
    """A memref of order 2, and a position that is uniform in the subgroup."""
    type_ = context.memref(node, name)
    context.check_indices(node, (x, y))
    context.check_uniform(node, x, y)
    if type_ and type_.order != 2:
        context.report_operand(node, name, f"{name} must have order 2, but {type_} has order {type_.order}")
        return None
    return type_


def check_construct(context: FunctionCheck, node: CooperativeMatrixConstruct) -> None:
    """A number of the component type."""
    scalar, result = context.number(node, node.value), node.types[0]
    context.check_uniform(node, node.value)
    if not isinstance(result.type, CoopMatrixType):
        context.error(f"{mnemonic(node)}: the result must be a coopmatrix, not {result}", result.span)
    elif scalar:
        _check_component(context, node, node.value, scalar, result.type, "the result")


def check_extract(context: FunctionCheck, node: CooperativeMatrixExtract) -> None:
    """A component of the work-item's vector."""
    type_ = context.matrix(node, node.matrix)
    if type_:
        _check_component_index(context, node, node.matrix, type_, node.index)
        context.check_result(node, f"the component type of {node.matrix}")


def check_insert(context: FunctionCheck, node: CooperativeMatrixInsert) -> None:
    """A number of the component type."""
    scalar, type_ = context.number(node, node.value), context.matrix(node, node.matrix)
    if not type_:
        return
    _check_component_index(context, node, node.matrix, type_, node.index)
    context.check_result(node, f"the type of {node.matrix}")
    if scalar:
        _check_component(context, node, node.value, scalar, type_, str(node.matrix))


def _check_component_index(
    context: FunctionCheck, node: Instruction, name: Name, type_: CoopMatrixType, index: int
) -> None:
    count = components(type_, context.subgroup_size)
    if not 0 <= index < count:
        message = (
            f"{mnemonic(node)}: index {index} must be at least 0 and below {count}, the components that a work-item "
            f"holds of {type_} with subgroup size {context.subgroup_size}"
        )
        context.error(message, node.span, *context.notes(name))


def _check_component(
    context: FunctionCheck, node: Instruction, name: Name, scalar: ScalarType, type_: CoopMatrixType, what: str
) -> None:
    if scalar != type_.component:
        message = f"{name} has type {scalar} but the components of {what} have type {type_.component}; cast the number"
        context.report_operand(node, name, message)


def check_mul_add(context: FunctionCheck, node: CooperativeMatrixMulAdd) -> None:
    """`RxK KxC + RxC -> RxC`, the number of rows R a multiple of the subgroup size."""
    a = context.matrix(node, node.a, "matrix_a")
    b = context.matrix(node, node.b, "matrix_b")
    c = context.matrix(node, node.c, "matrix_acc")
    if a and _has_full_rows(context, node, node.a, a) and c:
        context.check_equal_extents(node, _rows(node.a, a), _rows(node.c, c))
    if c:
        _has_full_rows(context, node, node.c, c)
        _check_sum(context, node, c)
    if a and b:
        context.check_equal_extents(node, _columns(node.a, a), _rows(node.b, b), "the inner extents")
    if b and c:
        context.check_equal_extents(node, _columns(node.b, b), _columns(node.c, c))
    if a and b:
        _check_product(context, node, a, b, c)


def _check_sum(context: FunctionCheck, node: CooperativeMatrixMulAdd, c: CoopMatrixType) -> None:
    result = node.types[0]
    if not isinstance(result.type, CoopMatrixType) or result.type.use != "matrix_acc" or result.type.shape != c.shape:
        message = f"the result must be a coopmatrix of use matrix_acc and of the shape of {node.c}, {c}, not {result}"
    elif problem := cast_problem(c.component, result.type.component):
        message = f"the sum of type {c.component} cannot become {result.type.component}: {problem}"
    else:
        return
    context.error(f"{mnemonic(node)}: {message}", result.span, *context.notes(node.c))


def _check_product(
    context: FunctionCheck,
    node: CooperativeMatrixMulAdd,
    a: CoopMatrixType,
    b: CoopMatrixType,
    c: CoopMatrixType | None,
) -> None:
    product = promote(a.component, b.component)
    if product is None:
        message = f"components {a.component} of {node.a} and {b.component} of {node.b} have no common type: cast one"
        context.report_operand(node, node.b, message, node.a)
    elif c and not promotable(product, c.component):
        message = (
            f"the product of {node.a} and {node.b} has type {product}, which cannot be promoted to {c.component}, "
            f"the component type of {node.c}"
        )
        context.report_operand(node, node.c, message, node.a, node.b)


def _rows(name: Name, type_: CoopMatrixType) -> ExtentOperand:
    return ExtentOperand(name, f"rows({name})", type_.rows)


def _columns(name: Name, type_: CoopMatrixType) -> ExtentOperand:
    return ExtentOperand(name, f"columns({name})", type_.columns)


def _has_full_rows(context: FunctionCheck, node: Instruction, name: Name, type_: CoopMatrixType) -> bool:
    if type_.rows % context.subgroup_size == 0:
        return True
    message = (
        f"rows({name}) = {type_.rows} must be a multiple of the subgroup size, {context.subgroup_size}; change the "
        "shape or the function's subgroup_size"
    )
    context.report_operand(node, name, message)
    return False


def check_prefetch(context: FunctionCheck, node: CooperativeMatrixPrefetch) -> None:
    """A level of at least 0, a block of at least 1 x 1."""
    check_block(context, node, node.source, node.x, node.y)
    if node.level < 0:
        context.error(f"{mnemonic(node)}: the cache level must be at least 0, but it is {node.level}", node.span)
    if node.rows < 1 or node.columns < 1:
        message = f"{mnemonic(node)}: rows and columns must be at least 1, but are {node.rows} and {node.columns}"
        context.error(message, node.span)


def check_reduce(context: FunctionCheck, node: CooperativeMatrixReduce) -> None:
    """`MxN -> Mx1` along rows, `MxN -> 1xN` along columns."""
    type_ = context.matrix(node, node.matrix)
    if not type_:
        return
    _has_full_rows(context, node, node.matrix, type_)
    check_update(context, node, node.op, node.matrix, type_.component)
    context.check_result(node, f"what .{node.mode} makes of {type_}")


def check_scale(context: FunctionCheck, node: CooperativeMatrixScale) -> None:
    """A number of the component type."""
    scalar, type_ = context.number(node, node.scalar), context.matrix(node, node.matrix)
    if not type_:
        return
    context.check_result(node, f"the type of {node.matrix}")
    if scalar:
        _check_component(context, node, node.scalar, scalar, type_, str(node.matrix))


def check_builtin(context: FunctionCheck, node: Builtin) -> None:
    """A component if there are several; type `index` for groups, `i32` for subgroups."""
    if (node.component is not None) != bool(operation_of(node).modifiers):
        message = "needs .x, .y or .z" if node.component is None else "has no .x, .y and .z"
        context.error(f"{node.name} {message}", node.span)
    context.check_result(node, "the type of this builtin")


def check_broadcast(context: FunctionCheck, node: SubgroupBroadcast) -> None:
    """The value of one work-item, whose number is uniform."""
    type_ = context.number(node, node.value)
    context.check_operand_type(node, node.lane, I32)
    context.check_uniform(node, node.lane)
    lane = context.constant(node.lane)
    if isinstance(lane, int) and not 0 <= lane < context.subgroup_size:
        message = f"{node.lane} is the constant {lane}, but work-items count from 0 to {context.subgroup_size - 1}"
        context.report_operand(node, node.lane, message)
    if type_:
        context.check_result(node, f"the type of {node.value}")


def check_operation(context: FunctionCheck, node: SubgroupOperation) -> None:
    """A scan or reduction of numbers; complex numbers are only added."""
    type_ = context.number(node, node.value)
    if type_:
        check_update(context, node, node.op, node.value, type_)
        context.check_result(node, f"the type of {node.value}")


def spread_of_builtin(context: FunctionCheck, node: Builtin) -> Spread | None:
    """Local ids count the work-items; all other builtins are uniform."""
    if node.name == "subgroup_local_id":
        return lane_spread(context.subgroup_size, exact=True)
    return constant_spread(context.subgroup_size) if node.name == "subgroup_size" else UNIFORM


def spread_of_operation(_context: FunctionCheck, node: SubgroupOperation) -> Spread | None:
    """A reduction is uniform."""
    return UNIFORM if node.kind == "reduce" else None


def spread_of_broadcast(_context: FunctionCheck, _node: SubgroupBroadcast) -> Spread | None:
    """Uniform."""
    return UNIFORM
