"""Outlining of loops and inlining of functions do not change the meaning."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate.interpreter import Machine
from tlx.ir.control_flow import ControlFlow, natural_loops
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse_fully
from tlx.ir.transform import LoopRegion, can_inline, inline_call, loop_region, outline_region
from tlx.llvm.verification import check_module

PROGRAM = """
define internal void @add(ptr %p, i64 %count, float %x) {
start:
  %place = alloca float
  store float %x, ptr %place
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %q = getelementptr float, ptr %p, i64 %i
  %old = load float, ptr %q
  %y = load float, ptr %place
  %new = fadd float %old, %y
  store float %new, ptr %q
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %count
  br i1 %again, label %loop, label %done
done:
  ret void
}

define internal void @set(ptr %p, float %x) {
  store float %x, ptr %p
  ret void
}

define void @main(ptr %data, i64 %rows) {
  %stride = mul i64 4, 1
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %offset = mul i64 %i, %stride
  %p = getelementptr float, ptr %data, i64 %offset
  call void @add(ptr %p, i64 4, float 1.5)
  call void @set(ptr %p, float 2.0)
  call void @add(ptr %p, i64 2, float 4.0)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %rows
  br i1 %again, label %loop, label %1
1:
  ret void
}
"""


def _parsed(text: str = PROGRAM) -> Module:
    return parse_fully(text)


def _result(module: Module) -> list[float]:
    data = np.arange(12, dtype=np.float32)
    Machine(module).call("main", data, 3)
    return data.tolist()


def _inline_all(module: Module, function: Function) -> None:
    pending = list(function.blocks)
    while pending:
        block = pending.pop()
        for call in block.instructions:
            if call.callee is not None:
                pending.append(inline_call(function, block, call, module.function(call.callee)))
                break


def _loop(function: Function, *, movable: bool = True) -> LoopRegion | None:
    flow = ControlFlow(function)
    (loop,) = natural_loops(flow)
    return loop_region(flow, loop, lambda _instruction: movable)


def test_inlined_calls_mean_the_same() -> None:
    module = _parsed()
    _inline_all(module, module.function("main"))
    check_module(module)
    main = str(module.function("main"))
    assert "call" not in main
    assert main.index("alloca") < main.index("%i = phi")
    assert _result(module) == _result(_parsed())


def test_allocas_of_the_callee_move_to_the_entry() -> None:
    module = _parsed()
    main = module.function("main")
    _inline_all(module, main)
    assert [i.opcode for i in main.entry.instructions].count("alloca") == 2
    assert sum(i.opcode == "alloca" for i in main.instructions()) == 2


def test_functions_with_several_returns_or_results_are_not_inlined() -> None:
    module = _parsed(
        "define i32 @result() {\n  ret i32 0\n}\n"
        "define void @ends(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  ret void\nb:\n  ret void\n}\n"
    )
    assert not any(can_inline(function) for function in module.functions)


def test_an_outlined_loop_means_the_same() -> None:
    module = _parsed()
    main = module.function("main")
    region = _loop(main)
    assert region is not None
    assert [value.name for value in region.captured] == ["stride", "data", "rows"]
    made = outline_region(module, main, region, "nest", "nounwind")
    check_module(module)
    assert not natural_loops(ControlFlow(main))
    assert len(natural_loops(ControlFlow(made))) == 1
    assert _result(module) == _result(_parsed())


def test_a_loop_after_a_condition_is_outlined() -> None:
    before = "%stride = mul i64 4, 1\n  br label %loop"
    guarded = "%stride = mul i64 4, 1\n  %runs = icmp slt i64 0, %rows\n  br i1 %runs, label %loop, label %1"
    text = PROGRAM.replace(before, guarded)
    assert text != PROGRAM
    module = _parsed(text)
    region = _loop(module.function("main"))
    assert region is not None
    outline_region(module, module.function("main"), region, "nest", "nounwind")
    check_module(module)
    assert _result(module) == _result(_parsed())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1:\n  ret void", "1:\n  store i64 %next, ptr %data\n  ret void"),
        ("1:\n  ret void", "1:\n  %last = phi i64 [ %next, %loop ]\n  ret void"),
        ("mul i64 4, 1", "mul i64 4, 1\n  %v = load <4 x float>, ptr %data"),
    ],
)
def test_loops_with_too_many_inputs_or_results_are_not_outlined(old: str, new: str) -> None:
    text = PROGRAM.replace(old, new)
    if "%v" in new:
        text = text.replace("float 1.5)", "float 1.5)\n  store <4 x float> %v, ptr %p")
    assert _loop(_parsed(text).function("main")) is None


def test_loops_with_instructions_that_must_stay_are_not_outlined() -> None:
    assert _loop(_parsed().function("main"), movable=False) is None


def test_locations_do_not_follow_a_loop() -> None:
    module = _parsed(PROGRAM.replace("call void @set(ptr %p, float 2.0)", "call void @set(ptr %p, float 2.0), !dbg !7"))
    main = module.function("main")
    region = _loop(main)
    assert region is not None
    made = outline_region(module, main, region, "nest", "nounwind")
    assert "!dbg" not in str(made)
    assert "@nest(i64 %stride, ptr %data, i64 %rows), !dbg !7" in str(main)
