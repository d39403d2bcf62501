"""Memory that is written between the load of a tensor and its use, by any kind of instruction."""

from typing import Final

from tests.semantics.hazards.language import CLOBBER, Hazard

WRITES: Final = (
    Hazard(
        "scalar_store_between",
        """
          %a = !load %p
          store float 9.0, ptr %p
          !store %q %a
          ret void
        """,
    ),
    Hazard(
        "scalar_store_between_q",
        """
          %a = !load %p
          store float 9.0, ptr %q
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "memset_between",
        """
          %a = !load %p
          call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 !bytes, i1 false)
          %m = !matmul %a %a
          !store %q %m
          ret void
        """,
    ),
    Hazard(
        "call_after_store",
        """
          %a = !load %p
          %m = !matmul %a %a
          !store %q %m
          call void @clobber(ptr %q)
          !store %r %m
          ret void
        """,
        others=CLOBBER,
    ),
    Hazard(
        "call_between",
        """
          %a = !load %p
          call void @clobber(ptr %p)
          !store %q %a
          ret void
        """,
        others=CLOBBER,
    ),
    Hazard(
        "call_between_q",
        """
          %a = !load %p
          call void @clobber(ptr %q)
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
        others=CLOBBER,
    ),
    Hazard(
        "volatile_load",
        """
          %a = !load %p
          %s = load volatile float, ptr %p
          !store %p %a
          store volatile float %s, ptr %r
          ret void
        """,
    ),
    Hazard(
        "volatile_store",
        """
          %a = !load %p
          store volatile float 8.0, ptr %p
          %m = !matmul %a %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "atomicrmw",
        """
          %a = !load %p
          %o = atomicrmw fadd ptr %p, float 1.0 monotonic
          !store %q %a
          store float %o, ptr %r
          ret void
        """,
    ),
    Hazard(
        "cmpxchg",
        """
          %a = !load %p
          %o = cmpxchg ptr %p, i32 1065353216, i32 0 seq_cst seq_cst
          !store %q %a
          ret void
        """,
    ),
    Hazard(
        "atomic_store",
        """
          %a = !load %p
          store atomic float 2.0, ptr %q release, align 4
          %b = !fadd %a %a
          !store %r %b
          ret void
        """,
    ),
    Hazard(
        "fence",
        """
          %a = !load %p
          fence seq_cst
          store float 5.0, ptr %q
          %b = !fadd %a %a
          !store %r %b
          ret void
        """,
    ),
    Hazard(
        "memcpy_between",
        """
          %a = !load %p
          call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %r, i64 !row, i1 false)
          %b = !fadd %a %a
          !store %q %b
          ret void
        """,
        attributes=("noalias", "", "noalias"),
    ),
    Hazard(
        "memmove_between",
        """
          %a = !load %p
          %e = getelementptr float, ptr %p, i64 3
          call void @llvm.memmove.p0.p0.i64(ptr %e, ptr %p, i64 !row, i1 false)
          %b = !fadd %a %a
          !store %q %b
          ret void
        """,
    ),
    Hazard(
        "masked_store",
        """
          %a = !load %p
          %mask = icmp sgt <4 x i64> <i64 1, i64 0, i64 1, i64 1>, zeroinitializer
          call void @llvm.masked.store.v4f32.p0(<4 x float> splat (float 2.0), ptr %q, i32 4, <4 x i1> %mask)
          !store %r %a
          ret void
        """,
        others="""
        declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)
        """,
    ),
    Hazard(
        "plain_vectors",
        """
          %a = load <!count x float>, ptr %p, align 4
          store float 5.0, ptr %p
          store <!count x float> %a, ptr %q, align 4
          ret void
        """,
    ),
    Hazard(
        "plain_vector_volatile",
        """
          %a = load volatile <!count x float>, ptr %p, align 4
          store float 5.0, ptr %p
          store <!count x float> %a, ptr %q, align 4
          ret void
        """,
    ),
    Hazard(
        "plain_swap",
        """
          %a = load <!count x float>, ptr %p, align 4
          %b = load <!count x float>, ptr %q, align 4
          store <!count x float> %a, ptr %q, align 4
          store <!count x float> %b, ptr %p, align 4
          ret void
        """,
    ),
    Hazard(
        "pointer_typeinfo",
        """
          %a = !pointer %p
          store float 5.0, ptr %p
          %m = !matmul %a %a
          !store %q %m
          ret void
        """,
    ),
    Hazard(
        "pointer_typeinfo_call",
        """
          %a = !pointer %p
          call void @clobber(ptr %q)
          %m = !matmul %a %a
          !store %q %m
          ret void
        """,
        others=CLOBBER,
    ),
    Hazard(
        "extract_after",
        """
          %a = !load %p
          %v = !vector %a
          store float 5.0, ptr %p
          %e = extractelement <!count x float> %v, i64 0
          store float %e, ptr %r
          ret void
        """,
    ),
    Hazard(
        "insert_after",
        """
          %a = !load %p
          %v = !vector %a
          store float 5.0, ptr %p
          %w = insertelement <!count x float> %v, float 2.0, i64 !last
          %t = !tensor %w
          !store %q %t
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "by_value_after",
        """
          %a = !load %p
          %v = !vector %a
          store float 5.0, ptr %p
          %w = call <!count x float> @twice(<!count x float> %v)
          %t = !tensor %w
          !store %q %t
          ret void
        """,
        others="""
        define <!count x float> @twice(<!count x float> %v) noinline {
          %w = fadd <!count x float> %v, %v
          ret <!count x float> %w
        }
        """,
    ),
    Hazard(
        "by_value_writer",
        """
          %a = !load %p
          %v = !vector %a
          %w = call <!count x float> @twice(<!count x float> %v, ptr %p)
          %t = !tensor %w
          %s = !fadd %t %a
          !store %q %s
          ret void
        """,
        others="""
        define <!count x float> @twice(<!count x float> %v, ptr %x) noinline {
          store float 4.0, ptr %x
          %w = fadd <!count x float> %v, %v
          ret <!count x float> %w
        }
        """,
    ),
    Hazard(
        "reader_after_store",
        """
          %a = !load %p
          %m = !matmul %a %a
          !store %q %m
          %s = call float @read(ptr %q)
          store float %s, ptr %r
          ret void
        """,
        others="""
        define float @read(ptr %x) noinline {
          %s = load float, ptr %x
          ret float %s
        }
        """,
    ),
    Hazard(
        "branch_overwritten_in_one",
        """
          %a = !load %p
          %m = !fadd %a %a
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %x, label %y
        x:
          store float 5.0, ptr %p
          !store %q %m
          br label %y
        y:
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "branch_phi_of_loads",
        """
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %x, label %y
        x:
          %a = !load %p
          %av = !vector %a
          br label %j
        y:
          %b = !load %q
          %bv = !vector %b
          br label %j
        j:
          %v = phi <!count x float> [ %av, %x ], [ %bv, %y ]
          store float 5.0, ptr %p
          store float 6.0, ptr %q
          %t = !tensor %v
          %m = !matmul %t %t
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "branch_phi_one_stays",
        """
          %a = !load %p
          %av = !vector %a
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %x, label %j
        x:
          %b = !load %q
          %s = !fadd %a %b
          %bv = !vector %s
          br label %j
        j:
          %v = phi <!count x float> [ %av, %0 ], [ %bv, %x ]
          store float 5.0, ptr %p
          %t = !tensor %v
          !store %r %t
          !store %q %a
          ret void
        """,
    ),
    Hazard(
        "switch_phi",
        """
          %a = !load %p
          %av = !vector %a
          %b = !load %q
          %bv = !vector %b
          switch i64 %n, label %j [ i64 3, label %x
          i64 4, label %x ]
        x:
          !store %p %b
          br label %j
        j:
          %v = phi <!count x float> [ %av, %0 ], [ %bv, %x ]
          %t = !tensor %v
          %m = !fadd %t %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "select_vectors",
        """
          %a = !load %p
          %av = !vector %a
          %b = !load %q
          %bv = !vector %b
          %c = icmp sgt i64 %n, 2
          %v = select i1 %c, <!count x float> %av, <!count x float> %bv
          store float 5.0, ptr %p
          %t = !tensor %v
          !store %r %t
          ret void
        """,
    ),
    Hazard(
        "packed_truths",
        """
          %mask = load <!count x i1>, ptr %q, align 1
          %a = !load %p
          %v = !vector %a
          %w = select <!count x i1> %mask, <!count x float> %v, <!count x float> zeroinitializer
          store i8 -1, ptr %q
          %t = !tensor %w
          !store %r %t
          ret void
        """,
    ),
)
