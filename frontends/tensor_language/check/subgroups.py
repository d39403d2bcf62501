"""Instructions of subgroups: builtins, scans and reductions, cooperative matrices."""

from __future__ import annotations

from tlx.frontends.tensor_language.analysis import UNIFORM, Spread, constant_spread, lane_spread
from tlx.frontends.tensor_language.check.context import (
    Context,
    Side,
    check_result,
    constant,
    equal_extents,
    exactly,
    indices,
    matrix,
    memref,
    number,
    operand_notes,
    report_operand,
    uniform,
)
from tlx.frontends.tensor_language.check.memory import check_order, check_update
from tlx.frontends.tensor_language.check.scalars import cast_problem
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.operations.core import mnemonic, operation_of
from tlx.frontends.tensor_language.operations.subgroups import (
    Builtin,
    CooperativeMatrixApply,
    CooperativeMatrixAtomicUpdate,
    CooperativeMatrixConstruct,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
    CooperativeMatrixLoad,
    CooperativeMatrixMulAdd,
    CooperativeMatrixPrefetch,
    CooperativeMatrixReduce,
    CooperativeMatrixScale,
    CooperativeMatrixStore,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name
from tlx.frontends.tensor_language.types import I32, CoopMatrixType, MemrefType, ScalarType, promotable, promote


def components(type_: CoopMatrixType, subgroup_size: int) -> int:
    """Components that each work-item holds.

    With `I = min(M,S)` rows, `J = ceil(I N / S) S / I` columns and `K = M / I` blocks of rows, `V = I J K / S`.
    """
    side = min(type_.rows, subgroup_size)
    return -(-type_.rows // side) * -(-side * type_.columns // subgroup_size)


def check_apply(context: Context, node: CooperativeMatrixApply) -> None:
    """The result has the type of the matrix; the region yields one component."""
    type_ = matrix(context, node, node.matrix)
    if type_:
        check_result(context, node, f"the type of {node.matrix}")
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


def _spread_of_rows(context: Context, type_: CoopMatrixType | None) -> Spread | None:
    """If there are at least as many rows as work-items, each work-item has a different row."""
    if type_ is None or type_.rows < context.subgroup_size:
        return None
    return lane_spread(context.subgroup_size, exact=False)


def _check_atomic(context: Context, node: CooperativeMatrixLoad | CooperativeMatrixStore, access: str) -> None:
    if node.atomic:
        check_order(context, node, access, node.semantics)
    elif (node.scope, node.semantics) != ("work_group", "relaxed"):  # built by a program; the parser never produces it
        message = "memory scope and semantics are those of atomic accesses: set atomic"
        context.error(f"{mnemonic(node)}: {message}", node.span)


def check_load(context: Context, node: CooperativeMatrixLoad) -> None:
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
        context.error(message, result.span, *operand_notes(context, node.source))


def check_store(context: Context, node: CooperativeMatrixStore) -> None:
    """`component_type(A) = element_type(M)`."""
    _check_atomic(context, node, "store")
    _check_write(context, node, node.matrix, node.target, node.x, node.y)


def check_atomic_update(context: Context, node: CooperativeMatrixAtomicUpdate) -> None:
    """As `store`; the result is the old entries."""
    type_ = _check_write(context, node, node.matrix, node.target, node.x, node.y)
    if type_:
        check_update(context, node, node.op, node.matrix, type_.component)
        check_result(context, node, f"the type of {node.matrix}, as the old entries are returned")


def _check_write(
    context: Context, node: Instruction, name: Name, memory: Name, x: Name, y: Name
) -> CoopMatrixType | None:
    type_, target = matrix(context, node, name), check_block(context, node, memory, x, y)
    if type_ and target and type_.component != target.element:
        message = (
            f"the components of {name} have type {type_.component} but the elements of {memory} have type "
            f"{target.element}; cast the coopmatrix"
        )
        report_operand(context, node, name, message, name, memory)
    return type_


def check_block(context: Context, node: Instruction, name: Name, x: Name, y: Name) -> MemrefType | None:
    """A memref of order 2, and a position that is uniform in the subgroup."""
    type_ = memref(context, node, name)
    indices(context, node, (x, y))
    uniform(context, node, x, y)
    if type_ and type_.order != 2:
        report_operand(context, node, name, f"{name} must have order 2, but {type_} has order {type_.order}", name)
        return None
    return type_


def check_construct(context: Context, node: CooperativeMatrixConstruct) -> None:
    """A number of the component type."""
    scalar, result = number(context, node, node.value), node.types[0]
    uniform(context, node, node.value)
    if not isinstance(result.type, CoopMatrixType):
        context.error(f"{mnemonic(node)}: the result must be a coopmatrix, not {result}", result.span)
    elif scalar:
        _check_component(context, node, node.value, scalar, result.type, "the result")


def check_extract(context: Context, node: CooperativeMatrixExtract) -> None:
    """A component of the work-item's vector."""
    type_ = matrix(context, node, node.matrix)
    if type_:
        _check_component_index(context, node, node.matrix, type_, node.index)
        check_result(context, node, f"the component type of {node.matrix}")


def check_insert(context: Context, node: CooperativeMatrixInsert) -> None:
    """A number of the component type."""
    scalar, type_ = number(context, node, node.value), matrix(context, node, node.matrix)
    if not type_:
        return
    _check_component_index(context, node, node.matrix, type_, node.index)
    check_result(context, node, f"the type of {node.matrix}")
    if scalar:
        _check_component(context, node, node.value, scalar, type_, str(node.matrix))


def _check_component_index(context: Context, node: Instruction, name: Name, type_: CoopMatrixType, index: int) -> None:
    count = components(type_, context.subgroup_size)
    if not 0 <= index < count:
        message = (
            f"{mnemonic(node)}: index {index} must be at least 0 and below {count}, the components that a work-item "
            f"holds of {type_} with subgroup size {context.subgroup_size}"
        )
        context.error(message, node.span, *operand_notes(context, name))


def _check_component(
    context: Context, node: Instruction, name: Name, scalar: ScalarType, type_: CoopMatrixType, what: str
) -> None:
    if scalar != type_.component:
        message = f"{name} has type {scalar} but the components of {what} have type {type_.component}; cast the number"
        report_operand(context, node, name, message, name)


def check_mul_add(context: Context, node: CooperativeMatrixMulAdd) -> None:
    """`RxK KxC + RxC -> RxC`, the number of rows R a multiple of the subgroup size."""
    a = matrix(context, node, node.a, "matrix_a")
    b = matrix(context, node, node.b, "matrix_b")
    c = matrix(context, node, node.c, "matrix_acc")
    if a and _has_full_rows(context, node, node.a, a) and c:
        equal_extents(context, node, _rows(node.a, a), _rows(node.c, c))
    if c:
        _has_full_rows(context, node, node.c, c)
        _check_sum(context, node, c)
    if a and b:
        equal_extents(context, node, _columns(node.a, a), _rows(node.b, b), "the inner extents")
    if b and c:
        equal_extents(context, node, _columns(node.b, b), _columns(node.c, c))
    if a and b:
        _check_product(context, node, a, b, c)


def _check_sum(context: Context, node: CooperativeMatrixMulAdd, c: CoopMatrixType) -> None:
    result = node.types[0]
    if not isinstance(result.type, CoopMatrixType) or result.type.use != "matrix_acc" or result.type.shape != c.shape:
        message = f"the result must be a coopmatrix of use matrix_acc and of the shape of {node.c}, {c}, not {result}"
    elif problem := cast_problem(c.component, result.type.component):
        message = f"the sum of type {c.component} cannot become {result.type.component}: {problem}"
    else:
        return
    context.error(f"{mnemonic(node)}: {message}", result.span, *operand_notes(context, node.c))


def _check_product(
    context: Context, node: CooperativeMatrixMulAdd, a: CoopMatrixType, b: CoopMatrixType, c: CoopMatrixType | None
) -> None:
    product = promote(a.component, b.component)
    if product is None:
        message = f"components {a.component} of {node.a} and {b.component} of {node.b} have no common type: cast one"
        report_operand(context, node, node.b, message, node.a, node.b)
    elif c and not promotable(product, c.component):
        message = (
            f"the product of {node.a} and {node.b} has type {product}, which cannot be promoted to {c.component}, "
            f"the component type of {node.c}"
        )
        report_operand(context, node, node.c, message, node.a, node.b, node.c)


def _rows(name: Name, type_: CoopMatrixType) -> Side:
    return Side(name, f"rows({name})", type_.rows)


def _columns(name: Name, type_: CoopMatrixType) -> Side:
    return Side(name, f"columns({name})", type_.columns)


def _has_full_rows(context: Context, node: Instruction, name: Name, type_: CoopMatrixType) -> bool:
    if type_.rows % context.subgroup_size == 0:
        return True
    message = (
        f"rows({name}) = {type_.rows} must be a multiple of the subgroup size, {context.subgroup_size}; change the "
        "shape or the function's subgroup_size"
    )
    report_operand(context, node, name, message, name)
    return False


def check_prefetch(context: Context, node: CooperativeMatrixPrefetch) -> None:
    """A level of at least 0, a block of at least 1 x 1."""
    check_block(context, node, node.source, node.x, node.y)
    if node.level < 0:
        context.error(f"{mnemonic(node)}: the cache level must be at least 0, but it is {node.level}", node.span)
    if node.rows < 1 or node.columns < 1:
        message = f"{mnemonic(node)}: rows and columns must be at least 1, but are {node.rows} and {node.columns}"
        context.error(message, node.span)


def check_reduce(context: Context, node: CooperativeMatrixReduce) -> None:
    """`MxN -> Mx1` along rows, `MxN -> 1xN` along columns."""
    type_ = matrix(context, node, node.matrix)
    if not type_:
        return
    _has_full_rows(context, node, node.matrix, type_)
    check_update(context, node, node.op, node.matrix, type_.component)
    check_result(context, node, f"what .{node.mode} makes of {type_}")


def check_scale(context: Context, node: CooperativeMatrixScale) -> None:
    """A number of the component type."""
    scalar, type_ = number(context, node, node.scalar), matrix(context, node, node.matrix)
    if not type_:
        return
    check_result(context, node, f"the type of {node.matrix}")
    if scalar:
        _check_component(context, node, node.scalar, scalar, type_, str(node.matrix))


def check_builtin(context: Context, node: Builtin) -> None:
    """A component if there are several; type `index` for groups, `i32` for subgroups."""
    if (node.component is not None) != bool(operation_of(node).modifiers):
        message = "needs .x, .y or .z" if node.component is None else "has no .x, .y and .z"
        context.error(f"{node.name} {message}", node.span)
    check_result(context, node, "the type of this builtin")


def check_broadcast(context: Context, node: SubgroupBroadcast) -> None:
    """The value of one work-item, whose number is uniform."""
    type_ = number(context, node, node.value)
    exactly(context, node, node.lane, I32)
    uniform(context, node, node.lane)
    lane = constant(context, node.lane)
    if isinstance(lane, int) and not 0 <= lane < context.subgroup_size:
        message = f"{node.lane} is the constant {lane}, but work-items count from 0 to {context.subgroup_size - 1}"
        report_operand(context, node, node.lane, message, node.lane)
    if type_:
        check_result(context, node, f"the type of {node.value}")


def check_operation(context: Context, node: SubgroupOperation) -> None:
    """A scan or reduction of numbers; complex numbers are only added."""
    type_ = number(context, node, node.value)
    if type_:
        check_update(context, node, node.op, node.value, type_)
        check_result(context, node, f"the type of {node.value}")


def spread_of_builtin(context: Context, node: Builtin) -> Spread | None:
    """Local ids count the work-items; all other builtins are uniform."""
    if node.name == "subgroup_local_id":
        return lane_spread(context.subgroup_size, exact=True)
    return constant_spread(context.subgroup_size) if node.name == "subgroup_size" else UNIFORM


def spread_of_operation(_context: Context, node: SubgroupOperation) -> Spread | None:
    """A reduction is uniform."""
    return UNIFORM if node.kind == "reduce" else None


def spread_of_broadcast(_context: Context, _node: SubgroupBroadcast) -> Spread | None:
    """Uniform."""
    return UNIFORM
