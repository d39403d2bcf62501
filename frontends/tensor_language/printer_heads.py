"""The text of each instruction, up to its first region and without the names of its results."""

from __future__ import annotations

from functools import singledispatch

from tlx.frontends.tensor_language.ast import collective, mixed, spmd
from tlx.frontends.tensor_language.ast.base import Instruction, Slice
from tlx.frontends.tensor_language.printer_attributes import constant_text, dictionary, names


@singledispatch
def head(instruction: Instruction) -> str:
    """The text of an instruction before its regions, types of results included."""
    raise NotImplementedError(f"no printed form of {type(instruction).__name__}")


@head.register
def _(i: collective.Alloca) -> str:
    attributes = f" {dictionary(i.attributes)}" if i.attributes.entries else ""
    return f"alloca{attributes}{_typed(i)}"


@head.register
def _(i: collective.LifetimeStop) -> str:
    return f"lifetime_stop {i.memref}"


@head.register
def _(i: collective.Axpby) -> str:
    return f"axpby{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.beta, i.b))}"


@head.register
def _(i: collective.Cumsum) -> str:
    return f"cumsum{_atomic(i)} {i.alpha}, {i.a}, {i.mode}, {i.beta}, {i.b}"


@head.register
def _(i: collective.Sum) -> str:
    return f"sum{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.beta, i.b))}"


@head.register
def _(i: collective.Gemm) -> str:
    # The first modifier is that of A, so it cannot be left out before a second one.
    transposes = "" if (i.transpose_a, i.transpose_b) == ("n", "n") else f".{i.transpose_a}.{i.transpose_b}"
    return f"gemm{_atomic(i)}{transposes} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Gemv) -> str:
    return f"gemv{_atomic(i)}{_transpose(i.transpose)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Ger) -> str:
    return f"ger{_atomic(i)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Hadamard) -> str:
    return f"hadamard{_atomic(i)} {names((i.alpha, i.a, i.b, i.beta, i.c))}"


@head.register
def _(i: collective.Parallel) -> str:  # noqa: ARG001 (nothing of it is in its head)
    return "parallel"


@head.register
def _(i: collective.Foreach) -> str:
    return f"foreach ({names(i.variables)})=({names(i.starts)}),({names(i.stops)})"


@head.register
def _(i: collective.ForeachTile) -> str:
    shape = ", ".join(map(str, i.tile_shape))
    loops = f"({names(i.variables)})=({names(i.starts)}),({names(i.stops)})"
    return f"foreach_tile {loops} as ({names(i.sizes)})<=({shape})"


@head.register
def _(i: mixed.ArithBinary | mixed.Comparison) -> str:
    return f"{i.op} {i.lhs}, {i.rhs}{_typed(i)}"


@head.register
def _(i: mixed.ArithUnary | mixed.Math) -> str:
    return f"{i.op} {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.Associated) -> str:
    return f"associated {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.AtomicLoad) -> str:
    return f"atomic_load{_memory(i.scope, i.semantics)} {i.source}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.AtomicStore) -> str:
    return f"atomic_store{_memory(i.scope, i.semantics)} {i.value}, {i.target}[{names(i.indices)}]"


@head.register
def _(i: mixed.AtomicUpdate) -> str:
    memory = _memory(i.scope, i.semantics)
    return f"atomic_{i.op}{memory} {i.value}, {i.target}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.Barrier) -> str:
    return f"barrier{'.global' * i.fence_global}{'.local' * i.fence_local}"


@head.register
def _(i: mixed.Builtin) -> str:
    return f"{i.name}{f'.{i.component}' if i.component else ''}{_typed(i)}"


@head.register
def _(i: mixed.Cast) -> str:
    return f"cast {i.operand}{_typed(i)}"


@head.register
def _(i: mixed.Constant) -> str:
    return f"constant {constant_text(i.value)}{_typed(i)}"


@head.register
def _(i: mixed.Expand) -> str:
    return f"expand {i.operand}[{i.mode}->{' x '.join(map(str, i.shape))}]{_typed(i)}"


@head.register
def _(i: mixed.Fuse) -> str:
    return f"fuse {i.operand}[{i.first},{i.last}]{_typed(i)}"


@head.register
def _(i: mixed.For) -> str:
    text = f"for {i.variable}={i.start},{i.stop}{f',{i.step}' if i.step else ''}"
    if not i.carried:
        return text
    pairs = ", ".join(f"{name}={first}" for name, first in zip(i.carried, i.initial, strict=True))
    return f"{text} init({pairs}){_arrow(i)}"


@head.register
def _(i: mixed.If) -> str:
    return f"if {i.condition}{_arrow(i)}"


@head.register
def _(i: mixed.Load) -> str:
    return f"load {i.source}[{names(i.indices)}]{_typed(i)}"


@head.register
def _(i: mixed.Size) -> str:
    return f"size {i.operand}[{i.mode}]{_typed(i)}"


@head.register
def _(i: mixed.Store) -> str:
    return f"store {i.value}, {i.target}[{names(i.indices)}]"


@head.register
def _(i: mixed.Subview) -> str:
    return f"subview {i.operand}[{', '.join(map(_slice, i.slices))}]{_typed(i)}"


@head.register
def _(i: mixed.Yield) -> str:
    return f"yield ({names(i.values)})"


@head.register
def _(i: spmd.SubgroupBroadcast) -> str:
    return f"subgroup_broadcast {i.value}, {i.lane}{_typed(i)}"


@head.register
def _(i: spmd.SubgroupOperation) -> str:
    return f"subgroup_{i.kind}_{i.op} {i.value}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixApply) -> str:
    types = ", ".join(map(str, i.types))
    return f"cooperative_matrix_apply ({i.row}, {i.column}, {i.value_name})={i.matrix} -> {types}"


@head.register
def _(i: spmd.CooperativeMatrixLoad) -> str:
    memory = _memory(i.scope, i.semantics) if i.atomic else ""
    name = f"cooperative_matrix{'_atomic' * i.atomic}_load{_access(i)}{memory}"
    return f"{name} {i.source}[{i.x}, {i.y}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixStore) -> str:
    memory = _memory(i.scope, i.semantics) if i.atomic else ""
    name = f"cooperative_matrix{'_atomic' * i.atomic}_store{_access(i)}{memory}"
    return f"{name} {i.matrix}, {i.target}[{i.x}, {i.y}]"


@head.register
def _(i: spmd.CooperativeMatrixAtomicUpdate) -> str:
    name = f"cooperative_matrix_atomic_{i.op}{_access(i)}{_memory(i.scope, i.semantics)}"
    return f"{name} {i.matrix}, {i.target}[{i.x}, {i.y}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixConstruct) -> str:
    return f"cooperative_matrix_construct {i.value}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixExtract) -> str:
    return f"cooperative_matrix_extract {i.matrix}[{i.index}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixInsert) -> str:
    return f"cooperative_matrix_insert {i.value}, {i.matrix}[{i.index}]{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixMulAdd) -> str:
    return f"cooperative_matrix_mul_add {i.a}, {i.b}, {i.c}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixPrefetch) -> str:
    return f"cooperative_matrix_prefetch {i.level}, {i.source}[{i.x}, {i.y}], {i.rows}, {i.columns}"


@head.register
def _(i: spmd.CooperativeMatrixReduce) -> str:
    return f"cooperative_matrix_reduce_{i.op}.{i.mode} {i.matrix}{_typed(i)}"


@head.register
def _(i: spmd.CooperativeMatrixScale) -> str:
    return f"cooperative_matrix_scale {i.scalar}, {i.matrix}{_typed(i)}"


def _typed(i: Instruction) -> str:
    return f" : {', '.join(map(str, i.types))}" if i.types else ""


def _arrow(i: Instruction) -> str:
    return f" -> ({', '.join(map(str, i.types))})" if i.types else ""


def _atomic(i: collective.Blas) -> str:
    return ".atomic" if i.atomic else ""


def _transpose(transpose: collective.Transpose) -> str:
    return ".t" if transpose == "t" else ""


def _access(i: spmd.MatrixAccess) -> str:
    return _transpose(i.transpose) + (f".{i.checked}" if i.checked else "")


def _memory(scope: mixed.Scope, semantics: mixed.Semantics) -> str:
    return ("" if scope == "work_group" else f".{scope}") + ("" if semantics == "relaxed" else f".{semantics}")


def _slice(item: Slice) -> str:
    return str(item.offset) if item.size is None else f"{item.offset}:{item.size}"
