"""Results that are stored over operands, over each other, or used again after their destination was overwritten."""

from typing import Final

from tests.semantics.hazards.language import Hazard

RESULTS: Final = (
    Hazard(
        "read_after_product_overwrote",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          !store %p %m
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "reload_after_product",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          !store %p %m
          %c = !load %p
          !store %r %c
          ret void
        """,
    ),
    Hazard(
        "reload_q_after_product",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          !store %p %m
          %c = !load %q
          %s = !fadd %c %a
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "two_stores",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          !store %p %m
          !store %q %m
          ret void
        """,
    ),
    Hazard(
        "scalar_around_store",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          store float 3.0, ptr %q
          !store %p %m
          store float 4.0, ptr %q
          %s = load float, ptr %p
          store float %s, ptr %r
          ret void
        """,
    ),
    Hazard(
        "accumulate",
        """
          %c = !load %p
          %a = !load %q
          %b = !load %r
          %m = !smma %c %a %b
          !store %p %m
          ret void
        """,
    ),
    Hazard(
        "accumulate_read_c",
        """
          %c = !load %p
          %a = !load %q
          %m = !smma %c %a %c
          !store %p %m
          !store %r %c
          ret void
        """,
    ),
    Hazard(
        "accumulate_other",
        """
          %c = !load %p
          %a = !load %q
          %m = !smma %c %a %a
          !store %q %m
          !store %r %c
          ret void
        """,
    ),
    Hazard(
        "transpose_in_place",
        """
          %a = !load %p
          %t = !transpose %a
          !store %p %t
          ret void
        """,
    ),
    Hazard(
        "transpose_shifted",
        """
          %a = !load %p
          %t = !transpose %a
          !store %q %t
          %m = !matmul %t %a
          !store %r %m
          ret void
        """,
    ),
    Hazard(
        "concat_overlap",
        """
          %a = !load %p
          %b = !load %q
          %c = !concat %a %b
          !store %r %c
          ret void
        """,
    ),
    Hazard(
        "concat_computed",
        """
          %a = !load %p
          %b = !load %q
          %x = !fadd %a %b
          %y = !fmul %a %b
          %c = !concat %x %y
          !store %r %c
          !store %q %x
          ret void
        """,
    ),
    Hazard(
        "shifted_elementwise",
        """
          %a = !load %p
          %b = !fadd %a %a
          %e = getelementptr float, ptr %p, i64 1
          !store %e %b
          ret void
        """,
    ),
    Hazard(
        "shifted_back",
        """
          %e = getelementptr float, ptr %p, i64 1
          %a = !load %e
          %b = !fadd %a %a
          !store %p %b
          ret void
        """,
    ),
    Hazard(
        "chain_stores",
        """
          %a = !load %p
          %b = !load %q
          %c = !fadd %a %b
          !store %q %c
          %d = !fmul %a %c
          !store %p %d
          %e = !fsub %c %a
          !store %r %e
          ret void
        """,
    ),
    Hazard(
        "fusion_second_destination",
        """
          %a = !load %p
          %b = !load %q
          %c = !fadd %a %a
          %d = !fmul %b %b
          !store %q %c
          !store %r %d
          !store %p %d
          ret void
        """,
    ),
    Hazard(
        "two_maps_crossed",
        """
          %a = !load %p
          %b = !load %q
          !store %p %b
          !store %q %a
          ret void
        """,
    ),
    Hazard(
        "three_rotated",
        """
          %a = !load %p
          %b = !load %q
          %c = !load %r
          !store %p %b
          !store %q %c
          !store %r %a
          ret void
        """,
    ),
    Hazard(
        "maps_crossed_computed",
        """
          %a = !load %p
          %b = !load %q
          %x = !fadd %a %b
          %y = !fsub %a %b
          !store %p %x
          !store %q %y
          ret void
        """,
    ),
    Hazard(
        "load_between_maps",
        """
          %a = !load %p
          %x = !fadd %a %a
          !store %q %x
          %b = !load %p
          %y = !fmul %b %x
          !store %r %y
          ret void
        """,
    ),
    Hazard(
        "dead_store_partial",
        """
          %a = !load %p
          %b = !load %q
          !store %r %a
          %e = getelementptr float, ptr %r, i64 3
          !store %e %b
          %c = !load %r
          !store %p %c
          ret void
        """,
    ),
    Hazard(
        "same_store_twice",
        """
          %a = !load %p
          !store %q %a
          %b = !load %q
          %c = !fadd %a %b
          !store %q %c
          !store %p %c
          ret void
        """,
    ),
    Hazard(
        "reads_of_noalias",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          !store %r %m
          %s = !fadd %a %b
          !store %r %s
          ret void
        """,
        attributes=("noalias readonly", "noalias readonly", "noalias"),
    ),
    Hazard(
        "product_chain_in_place",
        """
          %a = !load %p
          %b = !matmul %a %a
          %bk = !clamp %b
          !store %p %bk
          %c = !load %p
          %d = !matmul %c %a
          %dk = !clamp %d
          !store %p %dk
          %e = !matmul %bk %dk
          !store %q %e
          ret void
        """,
    ),
    Hazard(
        "temporaries_share",
        """
          %a = !load %p
          %b = !load %q
          %x = !matmul %a %b
          %xk = !clamp %x
          %y = !matmul %xk %a
          %yk = !clamp %y
          %z = !matmul %yk %xk
          %zk = !clamp %z
          %w = !matmul %zk %a
          %wk = !clamp %w
          %u = !fadd %wk %xk
          !store %p %u
          !store %q %zk
          !store %r %yk
          ret void
        """,
    ),
    Hazard(
        "temporaries_in_branches",
        """
          %a = !load %p
          %b = !load %q
          %x = !matmul %a %b
          %xk = !clamp %x
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %yes, label %no
        yes:
          %y = !matmul %xk %xk
          %yk = !clamp %y
          !store %p %yk
          br label %j
        no:
          %z = !matmul %b %xk
          %zk = !clamp %z
          !store %q %zk
          br label %j
        j:
          %u = !fadd %xk %a
          !store %r %u
          ret void
        """,
    ),
    Hazard(
        "epilogue_reads_destination",
        """
          %a = !load %p
          %b = !load %q
          %o = !load %r
          %m = !matmul %a %b
          %s = !fadd %m %o
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "epilogue_reads_shifted",
        """
          %a = !load %p
          %b = !load %q
          %f = getelementptr float, ptr %r, i64 1
          %o = !load %f
          %m = !matmul %a %b
          %s = !fadd %m %o
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "epilogue_reads_transposed",
        """
          %a = !load %p
          %b = !load %q
          %o = !load %r
          %t = !transpose %o
          %m = !matmul %a %b
          %s = !fadd %m %t
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "reduced_in_place",
        """
          %a = !load %p
          %d = !rowsum %a
          !store %p %d
          !store %q %a
          ret void
        """,
    ),
    Hazard(
        "row_broadcast_in_place",
        """
          %a = !load %p
          %d = !rowsum %a
          %b = !rowbroadcast %a %d
          %s = !fsub %a %b
          !store %p %s
          !store %q %d
          ret void
        """,
    ),
    Hazard(
        "vector_of_two_types",
        """
          %a = !load %p
          %b = !load %q
          %v = !vector %a
          %w = !vector %b
          %x = fadd <!count x float> %v, %w
          %s = !tensor %x
          %t = call token @llvm.tensor.typeinfo(<!count x float> %x, !wide, !order, !zeros)
          %y = call <!count x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)
          %u = !tensor %y
          %m = !matmul %s %u
          !store %p %m
          !store %r %s
          ret void
        """,
    ),
    Hazard(
        "fused_epilogue_over_operand",
        """
          %a = !load %p
          %b = !load %q
          %o = load <!count x float>, ptr %r, align 4
          %m = call <!count x float> @llvm.tensor.matmul(token %a, token %b)
          %s = fadd <!count x float> %m, %o
          %t = !tensor %s
          !store %p %t
          ret void
        """,
    ),
    Hazard(
        "fused_epilogue_over_operand_of_update",
        """
          %c = !load %r
          %a = !load %p
          %b = !load %q
          %m = call <!count x float> @llvm.tensor.smma(token %c, token %a, token %b)
          %s = call <!count x float> @llvm.minnum.!suffix(<!count x float> %m, <!count x float> splat (float 3.0))
          %t = !tensor %s
          !store %p %t
          ret void
        """,
    ),
    Hazard(
        "fused_epilogue_over_other_operand",
        """
          %a = !load %p
          %b = !load %q
          %o = load <!count x float>, ptr %r, align 4
          %m = call <!count x float> @llvm.tensor.matmul(token %a, token %b)
          %s = fadd <!count x float> %m, %o
          %t = !tensor %s
          !store %q %t
          ret void
        """,
    ),
    Hazard(
        "fused_epilogue_over_other_operand_of_update",
        """
          %c = !load %r
          %a = !load %p
          %b = !load %q
          %m = call <!count x float> @llvm.tensor.smma(token %c, token %a, token %b)
          %s = call <!count x float> @llvm.minnum.!suffix(<!count x float> %m, <!count x float> splat (float 3.0))
          %t = !tensor %s
          !store %q %t
          ret void
        """,
    ),
)
