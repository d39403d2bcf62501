"""Texts of instructions, each with the tree that it parses to."""

from __future__ import annotations

from typing import get_args

from tlx.frontends.tensor_language.operations.blas import Axpby, Cumsum, Gemm, Gemv, Ger, Hadamard, Sum
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, ForeachTile, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.core import UpdateOp
from tlx.frontends.tensor_language.operations.memory import (
    Alloca,
    Associated,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Expand,
    Fuse,
    LifetimeStop,
    Load,
    Size,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.operations.scalars import (
    ArithBinary,
    ArithBinaryOp,
    ArithUnary,
    ArithUnaryOp,
    Cast,
    Comparison,
    ComparisonOp,
    Math,
    MathOp,
)
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
    ScanKind,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Instruction,
    Name,
    NamedAttribute,
    Region,
    Slice,
    TypeRef,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    C32,
    F32,
    F64,
    I32,
    I64,
    INDEX,
    CoopMatrixType,
    MemrefType,
    Type,
)

A, B, C, I, J, R, S, V, X, Y, Z = (Name(letter) for letter in "ABCijrsvxyz")  # noqa: E741 (named as in the texts)


ALPHA, BETA = Name("alpha"), Name("beta")


MATRIX = CoopMatrixType(F32, 16, 8, "matrix_acc")


COOP = "coopmatrix<f32x16x8,matrix_acc>"


EMPTY = Region()


def results(*types: Type) -> tuple[TypeRef, ...]:
    return tuple(map(TypeRef, types))


def entry(name: str, value: bool | int, *, quoted: bool = False) -> NamedAttribute:
    return NamedAttribute(name, quoted, Attribute(value))


F, D, W, M, G = results(F32), results(F64), results(I32), results(MATRIX), results(INDEX)


LOCAL = results(MemrefType.packed(F32, (4, 8), "local"))


YIELD_X = Region([Yield(values=(X,))])


COLLECTIVE: list[tuple[str, Instruction]] = [
    ("%r = alloca : memref<f32x4x8,local>", Alloca(results=(R,), types=LOCAL)),
    (
        "%r = alloca {alignment=64} : memref<f32x4x8,local>",
        Alloca(results=(R,), types=LOCAL, attributes=Dictionary((entry("alignment", 64),))),
    ),
    ("lifetime_stop %A", LifetimeStop(memref=A)),
    ("axpby %alpha, %A, %beta, %B", Axpby(alpha=ALPHA, a=A, beta=BETA, b=B)),
    ("axpby.t %alpha, %A, %beta, %B", Axpby(alpha=ALPHA, a=A, beta=BETA, b=B, transpose="t")),
    ("axpby.atomic.n %alpha, %A, %beta, %B", Axpby(alpha=ALPHA, a=A, beta=BETA, b=B, atomic=True)),
    ("cumsum %alpha, %A, 2, %beta, %B", Cumsum(alpha=ALPHA, a=A, mode=2, beta=BETA, b=B)),
    ("cumsum.atomic %alpha, %A, 0, %beta, %B", Cumsum(alpha=ALPHA, a=A, mode=0, beta=BETA, b=B, atomic=True)),
    ("sum %alpha, %A, %beta, %B", Sum(alpha=ALPHA, a=A, beta=BETA, b=B)),
    ("sum.atomic.t %alpha, %A, %beta, %B", Sum(alpha=ALPHA, a=A, beta=BETA, b=B, atomic=True, transpose="t")),
    ("gemm %alpha, %A, %B, %beta, %C", Gemm(alpha=ALPHA, a=A, b=B, beta=BETA, c=C)),
    ("gemm.t %alpha, %A, %B, %beta, %C", Gemm(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, transpose_a="t")),
    ("gemm.n.t %alpha, %A, %B, %beta, %C", Gemm(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, transpose_b="t")),
    (
        "gemm.atomic.t.t %alpha, %A, %B, %beta, %C",
        Gemm(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, atomic=True, transpose_a="t", transpose_b="t"),
    ),
    ("gemv %alpha, %A, %B, %beta, %C", Gemv(alpha=ALPHA, a=A, b=B, beta=BETA, c=C)),
    (
        "gemv.atomic.t %alpha, %A, %B, %beta, %C",
        Gemv(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, atomic=True, transpose="t"),
    ),
    ("ger %alpha, %A, %B, %beta, %C", Ger(alpha=ALPHA, a=A, b=B, beta=BETA, c=C)),
    ("ger.atomic %alpha, %A, %B, %beta, %C", Ger(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, atomic=True)),
    ("hadamard %alpha, %A, %B, %beta, %C", Hadamard(alpha=ALPHA, a=A, b=B, beta=BETA, c=C)),
    ("hadamard.atomic %alpha, %A, %B, %beta, %C", Hadamard(alpha=ALPHA, a=A, b=B, beta=BETA, c=C, atomic=True)),
    ("parallel { }", Parallel(body=EMPTY)),
    (
        "foreach (%i,%j)=(%x,%x),(%y,%z) { yield (%x) }",
        Foreach(variables=(I, J), starts=(X, X), stops=(Y, Z), body=YIELD_X),
    ),
    (
        "foreach_tile (%i)=(%x),(%y) as (%s)<=(32) { }",
        ForeachTile(variables=(I,), starts=(X,), stops=(Y,), sizes=(S,), tile_shape=(32,), body=EMPTY),
    ),
]


MIXED: list[tuple[str, Instruction]] = [
    *(
        (f"%r = {op} %x, %y : i64", ArithBinary(op=op, lhs=X, rhs=Y, results=(R,), types=results(I64)))
        for op in get_args(ArithBinaryOp)
    ),
    ("%r = and %x, %y : bool", ArithBinary(op="and", lhs=X, rhs=Y, results=(R,), types=results(BOOL))),
    (f"%r = add %x, %y : {COOP}", ArithBinary(op="add", lhs=X, rhs=Y, results=(R,), types=M)),
    *(
        (f"%r = {op} %x : c32", ArithUnary(op=op, operand=X, results=(R,), types=results(C32)))
        for op in get_args(ArithUnaryOp)
    ),
    ("%r = not %x : bool", ArithUnary(op="not", operand=X, results=(R,), types=results(BOOL))),
    ("%r = associated %A : bool", Associated(operand=A, results=(R,), types=results(BOOL))),
    ("%r = atomic_load %A[] : f32", AtomicLoad(source=A, results=(R,), types=F)),
    (
        "%r = atomic_load.device.acquire %A[%i,%j] : f32",
        AtomicLoad(source=A, indices=(I, J), scope="device", semantics="acquire", results=(R,), types=F),
    ),
    ("atomic_store %x, %A[%i]", AtomicStore(value=X, destination=A, indices=(I,))),
    (
        "atomic_store.cross_device.release %x, %A[]",
        AtomicStore(value=X, destination=A, scope="cross_device", semantics="release"),
    ),
    *(
        (
            f"%r = atomic_{op}.subgroup.sequentially_consistent %x, %A[%i] : f32",
            AtomicUpdate(
                op=op,
                value=X,
                destination=A,
                indices=(I,),
                scope="subgroup",
                semantics="sequentially_consistent",
                results=(R,),
                types=F,
            ),
        )
        for op in get_args(UpdateOp)
    ),
    (
        "%r = atomic_add.acquire_release %x, %A[] : f32",
        AtomicUpdate(op="add", value=X, destination=A, semantics="acquire_release", results=(R,), types=F),
    ),
    (
        "%r = atomic_add.work_group.relaxed %x, %A[] : f32",
        AtomicUpdate(op="add", value=X, destination=A, results=(R,), types=F),
    ),
    ("barrier", Barrier()),
    ("barrier.global", Barrier(fence_global=True)),
    ("barrier.local", Barrier(fence_local=True)),
    ("barrier.global.local", Barrier(fence_global=True, fence_local=True)),
    ("%r = group_id.x : index", Builtin(name="group_id", component="x", results=(R,), types=G)),
    ("%r = num_groups.y : index", Builtin(name="num_groups", component="y", results=(R,), types=G)),
    ("%r = num_subgroups.z : i32", Builtin(name="num_subgroups", component="z", results=(R,), types=W)),
    ("%r = subgroup_size : i32", Builtin(name="subgroup_size", results=(R,), types=W)),
    ("%r = subgroup_id.x : i32", Builtin(name="subgroup_id", component="x", results=(R,), types=W)),
    ("%r = subgroup_linear_id : i32", Builtin(name="subgroup_linear_id", results=(R,), types=W)),
    ("%r = subgroup_local_id : i32", Builtin(name="subgroup_local_id", results=(R,), types=W)),
    ("%r = cast %x : f64", Cast(operand=X, results=(R,), types=D)),
    (f"%r = cast %x : {COOP}", Cast(operand=X, results=(R,), types=M)),
    *(
        (f"%r = {op} %x, %y : bool", Comparison(op=op, lhs=X, rhs=Y, results=(R,), types=results(BOOL)))
        for op in get_args(ComparisonOp)
    ),
    (
        "%r = expand %A[1->2x8] : memref<f32x4x8,local>",
        Expand(operand=A, mode=1, shape=(2, 8), results=(R,), types=LOCAL),
    ),
    (
        "%r = expand %A[ 0 -> %x x 2 x %y ] : memref<f32x4x8,local>",
        Expand(operand=A, mode=0, shape=(X, 2, Y), results=(R,), types=LOCAL),
    ),
    ("%r = fuse %A[1,3] : memref<f32x4x8,local>", Fuse(operand=A, first=1, last=3, results=(R,), types=LOCAL)),
    ("for %i=%x,%y { }", For(variable=I, start=X, stop=Y, body=EMPTY)),
    (
        "for %i=%x,%y,%z { } attributes {unroll=true}",
        For(variable=I, start=X, stop=Y, step=Z, body=EMPTY, attributes=Dictionary((entry("unroll", True),))),
    ),
    (
        f"%r, %s = for %i=%x,%y init(%v=%x, %A=%B) -> (i32, {COOP}) {{ yield (%x) }} attributes {{unroll=4}}",
        For(
            variable=I,
            start=X,
            stop=Y,
            carried=(V, A),
            initial=(X, B),
            body=YIELD_X,
            attributes=Dictionary((entry("unroll", 4),)),
            results=(R, S),
            types=results(I32, MATRIX),
        ),
    ),
    ("if %x { }", If(condition=X, then=EMPTY)),
    ("if %x { } else { yield (%x) }", If(condition=X, then=EMPTY, otherwise=YIELD_X)),
    (
        "%r = if %y -> (bool) { yield (%x) } else { yield (%x) }",
        If(condition=Y, then=YIELD_X, otherwise=YIELD_X, results=(R,), types=results(BOOL)),
    ),
    ("%r = load %A[] : f32", Load(source=A, results=(R,), types=F)),
    ("%r = load %A[%i, %j] : f32", Load(source=A, indices=(I, J), results=(R,), types=F)),
    ("%r = load %A[%i] : memref<f32x4x8,local>", Load(source=A, indices=(I,), results=(R,), types=LOCAL)),
    *((f"%r = {op} %x : f64", Math(op=op, operand=X, results=(R,), types=D)) for op in get_args(MathOp)),
    ("%r = size %A[1] : index", Size(operand=A, mode=1, results=(R,), types=G)),
    ("store %x, %A[]", Store(value=X, destination=A)),
    ("store %x, %A[%i,%j]", Store(value=X, destination=A, indices=(I, J))),
    ("%r = subview %A[] : memref<f32x4x8,local>", Subview(operand=A, results=(R,), types=LOCAL)),
    (
        "%r = subview %A[2:4, %x, %x:%y, 5, %x:0] : memref<f32x4x8,local>",
        Subview(
            operand=A, slices=(Slice(2, 4), Slice(X), Slice(X, Y), Slice(5), Slice(X, 0)), results=(R,), types=LOCAL
        ),
    ),
    ("yield ()", Yield()),
    ("yield (%x, %y)", Yield(values=(X, Y))),
]


SPMD: list[tuple[str, Instruction]] = [
    (
        f"%r = cooperative_matrix_apply (%i,%j,%v)=%A -> {COOP} {{ yield (%x) }}",
        CooperativeMatrixApply(row=I, column=J, value_name=V, matrix=A, body=YIELD_X, results=(R,), types=M),
    ),
    (
        f"%r = cooperative_matrix_load %A[%x,%y] : {COOP}",
        CooperativeMatrixLoad(source=A, x=X, y=Y, results=(R,), types=M),
    ),
    (
        f"%r = cooperative_matrix_load.t.both_checked %A[%x,%y] : {COOP}",
        CooperativeMatrixLoad(source=A, x=X, y=Y, transpose="t", checked="both_checked", results=(R,), types=M),
    ),
    (
        f"%r = cooperative_matrix_atomic_load.n.cols_checked.device.acquire %A[%x,%y] : {COOP}",
        CooperativeMatrixLoad(
            source=A,
            x=X,
            y=Y,
            checked="cols_checked",
            atomic=True,
            scope="device",
            semantics="acquire",
            results=(R,),
            types=M,
        ),
    ),
    ("cooperative_matrix_store %v, %A[%x,%y]", CooperativeMatrixStore(matrix=V, destination=A, x=X, y=Y)),
    (
        "cooperative_matrix_store.rows_checked %v, %A[%x,%y]",
        CooperativeMatrixStore(matrix=V, destination=A, x=X, y=Y, checked="rows_checked"),
    ),
    (
        "cooperative_matrix_atomic_store.t.release %v, %A[%x,%y]",
        CooperativeMatrixStore(matrix=V, destination=A, x=X, y=Y, transpose="t", atomic=True, semantics="release"),
    ),
    *(
        (
            f"%r = cooperative_matrix_atomic_{op}.t.rows_checked.subgroup %v, %A[%x,%y] : {COOP}",
            CooperativeMatrixAtomicUpdate(
                op=op,
                matrix=V,
                destination=A,
                x=X,
                y=Y,
                transpose="t",
                checked="rows_checked",
                scope="subgroup",
                results=(R,),
                types=M,
            ),
        )
        for op in get_args(UpdateOp)
    ),
    (f"%r = cooperative_matrix_construct %x : {COOP}", CooperativeMatrixConstruct(value=X, results=(R,), types=M)),
    (
        "%r = cooperative_matrix_extract %v[3] : f32",
        CooperativeMatrixExtract(matrix=V, index=3, results=(R,), types=F),
    ),
    (
        f"%r = cooperative_matrix_insert %x, %v[0] : {COOP}",
        CooperativeMatrixInsert(value=X, matrix=V, index=0, results=(R,), types=M),
    ),
    (
        f"%r = cooperative_matrix_mul_add %A, %B, %C : {COOP}",
        CooperativeMatrixMulAdd(a=A, b=B, c=C, results=(R,), types=M),
    ),
    (
        "cooperative_matrix_prefetch 0, %A[%x,%y], 8, 16",
        CooperativeMatrixPrefetch(level=0, source=A, x=X, y=Y, rows=8, columns=16),
    ),
    *(
        (
            f"%r = cooperative_matrix_reduce_{op}.{mode} %v : {COOP}",
            CooperativeMatrixReduce(op=op, mode=mode, matrix=V, results=(R,), types=M),
        )
        for op in get_args(UpdateOp)
        for mode in ("row", "column")
    ),
    (
        f"%r = cooperative_matrix_scale %x, %v : {COOP}",
        CooperativeMatrixScale(scalar=X, matrix=V, results=(R,), types=M),
    ),
    ("%r = subgroup_broadcast %x, %i : f32", SubgroupBroadcast(value=X, lane=I, results=(R,), types=F)),
    *(
        (f"%r = subgroup_{kind}_{op} %x : f32", SubgroupOperation(kind=kind, op=op, value=X, results=(R,), types=F))
        for kind in get_args(ScanKind)
        for op in get_args(UpdateOp)
    ),
]


INSTRUCTIONS = COLLECTIVE + MIXED + SPMD
