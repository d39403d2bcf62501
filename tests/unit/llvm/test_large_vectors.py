"""Vectors that LLVM is slow with: nothing computes with them as SSA values, and the time LLVM takes has a bound."""

from __future__ import annotations

import pytest

from tlx.fuzz.check import MismatchError, check_registers
from tlx.llvm.process import LLVMCrashError, LLVMProcess
from tlx.lower.pipeline import lower_text

LOOP = """
declare void @g(ptr)

define void @f(ptr %p, i64 %n, i1 %c) {
entry:
  %buffer = alloca [COUNT x TYPE], align 64
  %t = call token @llvm.tensor.load(ptr elementtype(TYPE) %p, DIMS, <1 x i32> zeroinitializer)
  %first = call VECTOR @llvm.tensor.tovector(token %t)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi VECTOR [ %first, %entry ], [ %w, %loop ]
  %w = fadd VECTOR %v, %v
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  store VECTOR %w, ptr %buffer
  call void @g(ptr %buffer)
  %x = load VECTOR, ptr %buffer
  %s = select i1 %c, VECTOR %w, VECTOR %x
  store VECTOR %s, ptr %p
  ret void
}
"""


def _loop(count: int, type_: str) -> str:
    dims = f"<1 x i32> <i32 {count}>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    vector = f"<{count} x {type_}>"
    return LOOP.replace("COUNT", str(count)).replace("TYPE", type_).replace("VECTOR", vector).replace("DIMS", dims)


def _plain(text: str) -> str:
    """The program with its tensor operations replaced by a load."""
    lines = [line for line in text.splitlines() if "llvm.tensor.load" not in line]
    return "\n".join(
        line.replace("call <", "load <").replace("@llvm.tensor.tovector(token %t)", ", ptr %p").replace("> ,", ">,")
        for line in lines
    )


@pytest.mark.parametrize(("count", "type_"), [(33, "bfloat"), (399, "bfloat"), (512, "bfloat"), (257, "float")])
@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_large_vectors_are_memory(count: int, type_: str, target: str) -> None:
    text = _loop(count, type_)
    lowered = lower_text(text, target=target)
    check_registers(text, lowered)
    assert f"phi <{count} x {type_}>" not in lowered
    assert f"fadd <{count} x {type_}>" not in lowered


def test_large_vectors_are_memory_without_tensor_operations_too() -> None:
    lowered = lower_text(_plain(_loop(399, "bfloat")), target="generic")
    assert "phi <399 x bfloat>" not in lowered
    small = _plain(_loop(256, "bfloat"))
    assert lower_text(small, target="generic") == small


def test_large_vectors_in_registers_are_detected() -> None:
    text = _loop(64, "bfloat")
    with pytest.raises(MismatchError, match="vectors too large for LLVM in @f: %v = phi"):
        check_registers(text, _plain(text))
    check_registers(text, _plain(_loop(32, "bfloat")))
    check_registers(_plain(text), _plain(text))


def test_phis_of_one_value_are_that_value() -> None:
    lowered = """define void @f(ptr %p, i1 %c, i1 %n, ptr %buffer) {
entry:
  %v = load <64 x bfloat>, ptr %p
  %u = load <64 x bfloat>, ptr %buffer
  br i1 %c, label %then, label %end
then:
  br label %end
end:
  %w = phi <64 x bfloat> [ %v, %entry ], [ %v, %then ]
  store <64 x bfloat> %w, ptr %buffer
  ret void
}
"""
    check_registers(_loop(64, "bfloat"), lowered)
    with pytest.raises(MismatchError, match="%w = phi"):
        check_registers(_loop(64, "bfloat"), lowered.replace("%v, %then", "%u, %then"))


def test_time_of_llvm_is_bounded() -> None:
    process = LLVMProcess()
    process.seconds = 0.5
    text = _plain(_loop(384, "bfloat"))
    with pytest.raises(LLVMCrashError, match=r"LLVM took more than 0\.5 s of CPU time in 'emit'"):
        process.ask("emit", text, kind="obj", level=2, cpu="x86-64", features="", triple="x86_64-linux", jit=False)
    process.seconds = 5
    assert process.ask("check", _plain(_loop(8, "float"))) == b""
    process.close()
