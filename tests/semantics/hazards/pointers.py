"""Pointers to the same memory under several names: constant offsets, stack arrays, globals, captured addresses."""

from typing import Final

from tests.semantics.hazards.language import Hazard

POINTERS: Final = (
    Hazard(
        "i1_vector_gep",
        """
          %a = !load %p
          %e = getelementptr <8 x i1>, ptr %p, i64 4
          store i32 0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "i1_vector_gep_far",
        """
          %f = getelementptr <8 x i1>, ptr %p, i64 4
          %a = !load %f
          %e = getelementptr float, ptr %p, i64 8
          store float 1.0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_inside",
        """
          %a = !load %p
          %e = getelementptr float, ptr %p, i64 !last
          store float 1.0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_after",
        """
          %a = !load %p
          %e = getelementptr float, ptr %p, i64 !count
          store float 1.0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_struct",
        """
          %a = !load %p
          %e = getelementptr { float, i32 }, ptr %p, i64 0, i32 1
          store i32 0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_struct2",
        """
          %a = !load %p
          %e = getelementptr { i8, float }, ptr %p, i64 1, i32 1
          store i32 0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_packed_struct",
        """
          %a = !load %p
          %e = getelementptr <{ i32, [3 x float] }>, ptr %p, i64 1, i32 1, i64 1
          store i32 0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_negative",
        """
          %e = getelementptr float, ptr %p, i64 !count
          %a = !load %p
          %f = getelementptr float, ptr %e, i64 -1
          store float 1.0, ptr %f
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_negative32",
        """
          %e = getelementptr float, ptr %p, i64 !count
          %a = !load %p
          %f = getelementptr float, ptr %e, i32 -1
          store float 1.0, ptr %f
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_v3",
        """
          %a = !load %p
          %e = getelementptr <3 x float>, ptr %p, i64 2
          store float 1.0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_v3_end",
        """
          %e0 = getelementptr float, ptr %p, i64 5
          %a = !load %e0
          %e = getelementptr <3 x float>, ptr %p, i64 1
          %e1 = getelementptr float, ptr %e, i64 1
          store float 1.0, ptr %e1
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_i1",
        """
          %e0 = getelementptr i1, ptr %p, i64 16
          %a = !load %e0
          %e = getelementptr i1, ptr %p, i64 20
          store float 1.0, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "gep_i24",
        """
          %a = !load %p
          %e = getelementptr i24, ptr %p, i64 4
          store i32 5, ptr %e
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "select_pointer",
        """
          %a = !load %p
          %c = icmp sgt i64 %n, 2
          %s = select i1 %c, ptr %p, ptr %q
          store float 6.0, ptr %s
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "phi_pointer",
        """
          %a = !load %p
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %x, label %y
        x:
          br label %j
        y:
          br label %j
        j:
          %s = phi ptr [ %p, %x ], [ %q, %y ]
          store float 6.0, ptr %s
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "alloca_copy",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          store float 6.0, ptr %l
          %m = !matmul %a %a
          !store %l %m
          %b = !load %l
          %s = !fadd %a %b
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "alloca_captured",
        """
          %l = alloca [!count x float]
          %h = alloca ptr
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          store ptr %l, ptr %h
          %a = !load %l
          %z = load ptr, ptr %h
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "alloca_captured_call",
        """
          %l = alloca [!count x float]
          %h = alloca ptr
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          store ptr %l, ptr %h
          %a = !load %l
          call void @through(ptr %h)
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        others="""
        define void @through(ptr %h) noinline {
          %z = load ptr, ptr %h
          store float 6.0, ptr %z
          ret void
        }
        """,
    ),
    Hazard(
        "returned_pointer",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          %z = call ptr @same(ptr %l)
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        others="""
        define ptr @same(ptr returned %h) noinline memory(none) {
          ret ptr %h
        }
        """,
    ),
    Hazard(
        "launder",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          %z = call ptr @llvm.launder.invariant.group.p0(ptr %l)
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        others="""
        declare ptr @llvm.launder.invariant.group.p0(ptr)
        """,
    ),
    Hazard(
        "strip_group",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          %z = call ptr @llvm.strip.invariant.group.p0(ptr %l)
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        others="""
        declare ptr @llvm.strip.invariant.group.p0(ptr)
        """,
    ),
    Hazard(
        "ptrmask",
        """
          %l = alloca [!count x float], align 64
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          %z = call ptr @llvm.ptrmask.p0.i64(ptr %l, i64 -16)
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        others="""
        declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
        """,
    ),
    Hazard(
        "inttoptr",
        """
          %i = ptrtoint ptr %p to i64
          %a = !load %p
          %z = inttoptr i64 %i to ptr
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
        attributes=("noalias", "", ""),
    ),
    Hazard(
        "inttoptr_alloca",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %i = ptrtoint ptr %l to i64
          %a = !load %l
          %z = inttoptr i64 %i to ptr
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "alloca_select",
        """
          %l = alloca [!count x float]
          call void @llvm.memcpy.p0.p0.i64(ptr %l, ptr %p, i64 !bytes, i1 false)
          %a = !load %l
          %c = icmp eq i64 %n, 3
          %z = select i1 %c, ptr %q, ptr %l
          store float 6.0, ptr %z
          %m = !fadd %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "global_written_by_call",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          %a = !load @g
          call void @write_g()
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        define void @write_g() noinline {
          store float 6.0, ptr @g
          ret void
        }
        """,
    ),
    Hazard(
        "global_alias",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          %a = !load @g
          store float 6.0, ptr @other
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        @other = internal alias float, ptr @g
        """,
    ),
    Hazard(
        "global_gep_constant",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          %a = !load @g
          store float 6.0, ptr getelementptr (float, ptr @g, i64 5)
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        """,
    ),
    Hazard(
        "global_weights_mutated",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          call void @mul(ptr %q, ptr %r)
          store float 6.0, ptr getelementptr (float, ptr @g, i64 5)
          %z = getelementptr float, ptr %r, i64 !count
          call void @mul(ptr %q, ptr %p)
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        define void @mul(ptr %x, ptr %y) noinline {
          %a = !load %x
          %b = !load @g
          %m = !matmul %a %b
          !store %y %m
          ret void
        }
        """,
    ),
    Hazard(
        "global_and_argument",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          call void @inner(ptr @g, ptr %r)
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        define void @inner(ptr %x, ptr %y) noinline {
          %a = !load %x
          store float 6.0, ptr @g
          %c = !fadd %a %a
          !store %y %c
          ret void
        }
        """,
    ),
    Hazard(
        "argument_and_global",
        """
          call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr %p, i64 !bytes, i1 false)
          call void @inner(ptr @g, ptr %r)
          ret void
        """,
        others="""
        @g = internal global [!count x float] zeroinitializer
        define void @inner(ptr %x, ptr %y) noinline {
          %a = !load @g
          store float 6.0, ptr %x
          %c = !fadd %a %a
          !store %y %c
          ret void
        }
        """,
    ),
)
