"""Loops that carry tensors, or whose operands the loop itself overwrites."""

from typing import Final

from tests.semantics.hazards.language import CLOBBER, Hazard


def _loop(
    name: str,
    body: str,
    *,
    before: str = "",
    phis: str = "",
    after: str = "",
    others: str = "",
    attributes: tuple[str, str, str] = ("", "", ""),
) -> Hazard:
    """A program with a loop of `%n` iterations, numbered by `%i`, whose last block is `%latch`."""
    text = f"""{before}
        br label %loop
        loop:
          %i = phi i64 [ 0, %0 ], [ %i.next, %latch ]
          {phis}
          %more = icmp ult i64 %i, %n
          br i1 %more, label %body, label %done
        body:
          {body}
          br label %latch
        latch:
          %i.next = add i64 %i, 1
          br label %loop
        done:
          {after}
          ret void
        """
    return Hazard(name, text, others, attributes)


LOOPS: Final = (
    _loop(
        "loop_carries_load",
        """
          %t = !tensor %v
          %e = getelementptr float, ptr %p, i64 %i
          %l = !load %e
          %vn = !vector %l
          store float 2.0, ptr %e
          !store %q %t
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
        after="""
          %u = !tensor %v
          !store %r %u
        """,
    ),
    _loop(
        "loop_pointer_goes_back",
        """
          %up = getelementptr float, ptr %x, i64 !count
          !store %up %z0
          %t = !tensor %v
          %w = !fadd %t %z0
          !store %q %w
          %l = !load %x
          %vn = !vector %l
          %xn = getelementptr float, ptr %x, i64 -!count
        """,
        before="""
          %top = getelementptr float, ptr %p, i64 !count2
          %s0 = !load %p
          %v0 = !vector %s0
          %z0 = !load %q
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
          %x = phi ptr [ %top, %0 ], [ %xn, %latch ]
        """,
    ),
    _loop(
        "loop_swaps",
        """
          %vt = !tensor %v
          %wt = !tensor %w
          %m = !fadd %vt %wt
          %vn = !vector %m
          !store %p %wt
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %s1 = !load %q
          %w0 = !vector %s1
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
          %w = phi <!count x float> [ %w0, %0 ], [ %v, %latch ]
        """,
        after="""
          %vt2 = !tensor %v
          %wt2 = !tensor %w
          !store %q %vt2
          !store %r %wt2
        """,
    ),
    _loop(
        "loop_pure_swap",
        """
          %wt = !tensor %w
          !store %r %wt
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %s1 = !load %q
          %w0 = !vector %s1
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %w, %latch ]
          %w = phi <!count x float> [ %w0, %0 ], [ %v, %latch ]
        """,
        after="""
          %vt2 = !tensor %v
          %wt2 = !tensor %w
          !store %q %vt2
          !store %p %wt2
        """,
    ),
    _loop(
        "loop_rotates_three",
        """
          %wt = !tensor %w
          !store %p %wt
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %s1 = !load %q
          %w0 = !vector %s1
          %s2 = !load %r
          %x0 = !vector %s2
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %w, %latch ]
          %w = phi <!count x float> [ %w0, %0 ], [ %x, %latch ]
          %x = phi <!count x float> [ %x0, %0 ], [ %v, %latch ]
        """,
        after="""
          %vt2 = !tensor %v
          %wt2 = !tensor %w
          !store %q %vt2
          !store %r %wt2
        """,
    ),
    _loop(
        "loop_old_read_after_update",
        """
          %t = !tensor %v
          %m = !smma %t %a %a
          %vn = !vector %m
          !store %r %t
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %a = !load %q
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
    ),
    _loop(
        "loop_product_of_carried",
        """
          %t = !tensor %v
          %m = !matmul %a %t
          %k = !clamp %m
          %vn = !vector %k
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %a = !load %q
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
        after="""
          %u = !tensor %v
          !store %r %u
        """,
    ),
    _loop(
        "loop_carried_twice",
        """
          %t = !tensor %v
          %u = !tensor %w
          %a = !fadd %t %u
          %vn = !vector %a
          store float 1.0, ptr %p
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
          %w = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
        """,
        after="""
          %t2 = !tensor %v
          %u2 = !tensor %w
          !store %q %t2
          !store %r %u2
        """,
    ),
    _loop(
        "loop_previous",
        """
          %t = !tensor %v
          %a = !fadd %t %t
          %vn = !vector %a
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
        """,
        phis="""
          %v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
          %w = phi <!count x float> [ zeroinitializer, %0 ], [ %v, %latch ]
        """,
        after="""
          %t2 = !tensor %v
          %u2 = !tensor %w
          !store %q %t2
          !store %r %u2
        """,
    ),
    _loop(
        "loop_invariant_operand",
        """
          %m = !matmul %a %b
          %k = !clamp %m
          %e = getelementptr float, ptr %r, i64 %i
          !store %e %k
        """,
        before="""
          %a = !load %p
          %b = !load %q
        """,
    ),
    _loop(
        "loop_weights_reloaded",
        """
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          %e = getelementptr float, ptr %r, i64 %i
          !store %e %k
        """,
        before="%a = !load %p",
    ),
    _loop(
        "loop_both_reloaded",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
        """,
    ),
    _loop(
        "loop_weights_stored_sometimes",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
          %o = and i64 %i, 1
          %c = icmp eq i64 %o, 1
          br i1 %c, label %x, label %y
        x:
          store float 3.0, ptr %q
          br label %y
        y:
        """,
    ),
    _loop(
        "loop_weights_clobbered",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
          call void @clobber(ptr %q)
        """,
        others=CLOBBER,
        attributes=("noalias", "noalias", "noalias"),
    ),
    _loop(
        "loop_weights_atomic",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
          %o = atomicrmw xchg ptr %q, float 2.0 monotonic
        """,
        attributes=("noalias", "noalias", "noalias"),
    ),
    _loop(
        "loop_weights_volatile",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
          %if = uitofp i64 %i to float
          store volatile float %if, ptr %q
        """,
        attributes=("noalias", "noalias", "noalias"),
    ),
    _loop(
        "loop_weights_memcpy",
        """
          %a = !load %p
          %b = !load %q
          %m = !matmul %a %b
          %k = !clamp %m
          !store %r %k
          call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %r, i64 !row, i1 false)
        """,
        attributes=("noalias", "noalias", "noalias"),
    ),
    _loop(
        "loop_value_after",
        """
          %e = getelementptr float, ptr %p, i64 %i
          %a = !load %e
          %ln = !vector %a
          %s = !fadd %a %a
          !store %q %s
        """,
        phis="%l = phi <!count x float> [ zeroinitializer, %0 ], [ %ln, %latch ]",
        after="""
          store float 9.0, ptr %p
          %t = !tensor %l
          !store %r %t
        """,
    ),
    _loop(
        "loop_shift_in_place",
        """
          %e = getelementptr float, ptr %p, i64 %i
          %a = !load %e
          %s = !fadd %a %a
          %k = !clamp %s
          %f = getelementptr float, ptr %e, i64 1
          !store %f %k
        """,
    ),
    _loop(
        "loop_stack_array",
        """
          %e = getelementptr float, ptr %p, i64 %i
          %a = !load %e
          !store %l %a
          %b = !load %l
          store float 1.0, ptr %l
          %s = !fadd %b %a
          %k = !clamp %s
          !store %q %k
          %z = !load %l
          !store %r %z
        """,
        before="%l = alloca [!count x float]",
    ),
    _loop(
        "loop_alloca_inside_malloc",
        """
          %l = call ptr @malloc(i64 !bytes)
          %a = !load %p
          !store %l %a
          store float 1.0, ptr %p
          %b = !load %l
          %s = !fadd %b %a
          %k = !clamp %s
          !store %q %k
          call void @free(ptr %l)
        """,
        others="""
          declare noalias ptr @malloc(i64)
          declare void @free(ptr)
        """,
    ),
    Hazard(
        "loop_early_exit",
        """
          %s0 = !load %p
          %v0 = !vector %s0
          br label %loop
        loop:
          %i = phi i64 [ 0, %0 ], [ %in, %latch ]
          %v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]
          %t = !tensor %v
          %a = !fadd %t %s0
          %k = !clamp %a
          %vn = !vector %k
          %c = icmp eq i64 %i, 1
          br i1 %c, label %out, label %latch
        latch:
          %in = add i64 %i, 1
          %more = icmp ult i64 %in, %n
          store float 1.0, ptr %p
          br i1 %more, label %loop, label %done
        out:
          !store %q %t
          !store %r %k
          ret void
        done:
          !store %r %t
          ret void
        """,
    ),
    _loop(
        "nested_loops",
        """
          br label %inner
        inner:
          %j = phi i64 [ 0, %body ], [ %jn, %inner ]
          %w = phi <!count x float> [ %v, %body ], [ %wn, %inner ]
          %wt = !tensor %w
          %vt = !tensor %v
          %a = !fadd %wt %vt
          %k = !clamp %a
          %wn = !vector %k
          %jn = add i64 %j, 1
          %again = icmp ult i64 %jn, 2
          br i1 %again, label %inner, label %after
        after:
          %vn = fadd <!count x float> %wn, %v0
          !store %q %vt
          store float 3.0, ptr %p
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
        after="""
          %u = !tensor %v
          !store %r %u
        """,
    ),
    _loop(
        "nested_inner_of_outer",
        """
          br label %inner
        inner:
          %j = phi i64 [ 0, %body ], [ %jn, %inner ]
          %w = phi <!count x float> [ %v0, %body ], [ %v, %inner ]
          %wt = !tensor %w
          !store %q %wt
          %jn = add i64 %j, 1
          %again = icmp ult i64 %jn, 2
          br i1 %again, label %inner, label %after
        after:
          %a = !fadd %wt %s0
          %k = !clamp %a
          %vn = !vector %k
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
        after="""
          %u = !tensor %v
          !store %r %u
        """,
    ),
    Hazard(
        "irreducible",
        """
          %s0 = !load %p
          %v0 = !vector %s0
          %c = icmp sgt i64 %n, 2
          br i1 %c, label %x, label %y
        x:
          %v = phi <!count x float> [ %v0, %0 ], [ %w, %y ]
          %i = phi i64 [ 0, %0 ], [ %j, %y ]
          %t = !tensor %v
          %a = !fadd %t %s0
          %av = !vector %a
          %in = add i64 %i, 1
          store float 2.0, ptr %p
          %m = icmp ult i64 %in, %n
          br i1 %m, label %y, label %done
        y:
          %w = phi <!count x float> [ %v0, %0 ], [ %av, %x ]
          %j = phi i64 [ 0, %0 ], [ %in, %x ]
          %u = !tensor %w
          !store %q %u
          %jm = icmp ult i64 %j, %n
          br i1 %jm, label %x, label %done
        done:
          %d = phi <!count x float> [ %v, %x ], [ %w, %y ]
          %dt = !tensor %d
          !store %r %dt
          ret void
        """,
    ),
    _loop(
        "loop_fused_product_of_carried",
        """
          %t = !tensor %v
          %m = call <!count x float> @llvm.tensor.matmul(token %a, token %t)
          %s = fadd <!count x float> %m, %o
          %vn = call <!count x float> @llvm.minnum.!suffix(<!count x float> %s, <!count x float> splat (float 3.0))
        """,
        before="""
          %s0 = !load %p
          %v0 = !vector %s0
          %a = !load %q
          %o = load <!count x float>, ptr %r, align 4
        """,
        phis="%v = phi <!count x float> [ %v0, %0 ], [ %vn, %latch ]",
        after="""
          %u = !tensor %v
          !store %r %u
        """,
    ),
)
