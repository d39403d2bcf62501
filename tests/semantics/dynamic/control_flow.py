"""Tensors of run-time size in loops and branches, and memory that changes after it was loaded."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.semantics.dynamic.programs import Body, Program, integers

PARAMETERS = "ptr %a, ptr %b, ptr %c, i32 %n, i32 %times"
SIZES = [(1, 1), (5, 1), (5, 4), (70, 3)]


def _arguments(rng: np.random.Generator, n: int, times: int) -> list[Any]:
    return [*(integers(rng, n * n, np.float32, -1, 2) for _ in range(3)), n, times]


def _square(t: Body, pointer: str) -> str:
    return t.load(pointer, "float", ("%n", "%n"))


def _power(t: Body) -> None:
    """A phi of handles, squared or multiplied in each iteration, used after the loop."""
    first = t.op("tovector", "float", _square(t, "%a"))
    t.line("br label %loop")
    t.label("loop")
    t.line(f"%x = phi <vscale x 1 x float> [ {first}, %0 ], [ %y, %loop ]")
    t.line("%i = phi i32 [ 0, %0 ], [ %j, %loop ]")
    token = t.info("%x", "float", ("%n", "%n"))
    product = t.op("matmul", "float", token, _square(t, "%b"))
    t.line(f"%y = fadd <vscale x 1 x float> {product}, %x")
    t.line("%j = add i32 %i, 1")
    t.line("%more = icmp ult i32 %j, %times")
    t.line("br i1 %more, label %loop, label %end")
    t.label("end")
    t.put("%c", "%x", "float", ("%n", "%n"))
    t.put("%a", "%y", "float", ("%n", "%n"))


def _swap(t: Body) -> None:
    """Two phis that are swapped; an edge from the loop header leaves the loop."""
    first, second = t.op("tovector", "float", _square(t, "%a")), t.op("tovector", "float", _square(t, "%b"))
    t.line("br label %loop")
    t.label("loop")
    t.line(f"%x = phi <vscale x 1 x float> [ {first}, %0 ], [ %y, %loop ]")
    t.line(f"%y = phi <vscale x 1 x float> [ {second}, %0 ], [ %x, %loop ]")
    t.line("%i = phi i32 [ 0, %0 ], [ %j, %loop ]")
    t.line("%j = add i32 %i, 1")
    t.line("%more = icmp ult i32 %j, %times")
    t.line("br i1 %more, label %loop, label %end")
    t.label("end")
    t.put("%c", "%x", "float", ("%n", "%n"))


def _branches(t: Body) -> None:
    """A tensor from one of two branches, and an early return."""
    t.line("%none = icmp eq i32 %times, 3")
    x = t.op("tovector", "float", _square(t, "%a"))
    t.line("br i1 %none, label %out, label %next")
    t.label("out")
    t.line("ret void")
    t.label("next")
    t.line("%odd = trunc i32 %times to i1")
    t.line("br i1 %odd, label %yes, label %join")
    t.label("yes")
    twice = t.vscale(f"fadd H {x}, {x}")
    t.line("br label %join")
    t.label("join")
    t.line(f"%r = phi <vscale x 1 x float> [ {x}, %next ], [ {twice}, %yes ]")
    t.put("%c", "%r", "float", ("%n", "%n"))


def _overwritten(t: Body) -> None:
    """A load reads the memory as it was when it executed."""
    x, y = _square(t, "%a"), t.view("%b", "float", ("%n", "%n"))
    t.store("%a", y, (0, 0))
    t.line("store float 9.0, ptr %b, align 4")
    r = t.op("matmul", "float", x, y)
    t.put("%c", r, "float", ("%n", "%n"))


def _shifted(t: Body) -> None:
    """A copy to memory that overlaps its source."""
    inner = t.value("sub i32 %n, 1")
    inner = t.value(f"call i32 @llvm.umax.i32(i32 {inner}, i32 1)")
    x = t.load("%a", "float", (inner, "%n"))
    t.line("%to = getelementptr float, ptr %a, i32 %n")
    one = t.value("icmp eq i32 %n, 1")
    t.line(f"%where = select i1 {one}, ptr %a, ptr %to")
    t.store("%where", x, (0, 0))
    t.declarations.add("declare i32 @llvm.umax.i32(i32, i32)")


def _batch_in_loop(t: Body) -> None:
    """Loops in a block that is followed by phis."""
    t.line("br label %loop")
    t.label("loop")
    t.line("%i = phi i32 [ 0, %0 ], [ %j, %loop ]")
    x = t.load("%a", "float", ("%n", 1, "%n"))
    y = t.load("%b", "float", ("%n", "%n", 1))
    t.put("%c", t.op("matmul", "float", x, y), "float", ("%n", 1, 1))
    t.line("%j = add i32 %i, 1")
    t.line("%more = icmp ult i32 %j, %times")
    t.line("br i1 %more, label %loop, label %end")
    t.label("end")
    t.line("%done = phi i32 [ %j, %loop ]")


def _onto_itself(t: Body) -> None:
    """Written in place, then shifted by one element: all is read before anything is written."""
    x = t.op("tovector", "float", t.load("%a", "float", ("%n",)))
    t.put("%a", t.vscale(f"fadd H {x}, {x}"), "float", ("%n",))
    t.line("%less = sub i32 %n, 1")
    t.line("%one = call i32 @llvm.umax.i32(i32 %less, i32 1)")
    y = t.op("tovector", "float", t.load("%a", "float", ("%one",)))
    t.line("%single = icmp eq i32 %n, 1")
    t.line("%to = getelementptr float, ptr %a, i32 1")
    t.line("%where = select i1 %single, ptr %a, ptr %to")
    t.put("%where", t.vscale(f"fmul H {y}, {y}"), "float", ("%one",))
    t.declarations.add("declare i32 @llvm.umax.i32(i32, i32)")


def _late_write(t: Body) -> None:
    """The memory of a handle changes between two of its uses."""
    x = t.op("tovector", "float", t.load("%a", "float", ("%n", "%n")))
    first = t.vscale(f"fadd H {x}, {x}")
    t.put("%c", first, "float", ("%n", "%n"))
    t.line("store float 7.0, ptr %a, align 4")
    t.put("%b", t.vscale(f"fsub H {x}, splat (float 1.0)"), "float", ("%n", "%n"))


FLOW: list[Program] = [
    Program("onto_itself", PARAMETERS, _onto_itself, _arguments, [(1, 0), (2, 0), (70, 0)]),
    Program("late_write", PARAMETERS, _late_write, _arguments, SIZES),
    Program("power", PARAMETERS, _power, _arguments, SIZES),
    Program("swap", PARAMETERS, _swap, _arguments, SIZES),
    Program("branches", PARAMETERS, _branches, _arguments, SIZES),
    Program("overwritten", PARAMETERS, _overwritten, _arguments, SIZES),
    Program("shifted", PARAMETERS, _shifted, _arguments, SIZES),
    Program("batch_in_loop", PARAMETERS, _batch_in_loop, _arguments, SIZES),
]
