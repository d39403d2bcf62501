"""Handles: which values of a function stand for tensors of a size known only at run time, and what may be done to them.

%c = call <vscale x 1 x float> @llvm.tensor.matmul(...)        a handle
%d = fmul <vscale x 1 x float> %c, splat (float 2.0)           a handle, made element by element
%e = phi <vscale x 1 x float> [ %c, %a ], [ %d, %b ]           a handle
store <vscale x 1 x float> %d, ptr %p                          an error: LLVM would store vscale elements
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tlx.diagnostics import VerifyError
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Instruction
from tlx.ir.tensors.calls import is_tensor_call, operand_span
from tlx.ir.types import PointerType, Type, VectorType
from tlx.ir.values import ConstExpr, Keyword, Local, Splat, Value

_CASTS: Final = CAST_OPCODES - {"ptrtoint", "ptrtoaddr", "inttoptr", "addrspacecast", "bitcast"}
ELEMENTWISE_OPCODES: Final = frozenset({*BINARY_OPCODES, *_CASTS, "fneg", "freeze", "icmp", "fcmp", "select"})
_INTRINSICS: Final = frozenset(
    "fma fmuladd fabs sqrt floor ceil trunc rint nearbyint round roundeven copysign canonicalize minnum maxnum "
    "minimum maximum minimumnum maximumnum smax smin umax umin abs ctpop ctlz cttz bswap bitreverse fshl fshr "
    "sadd.sat ssub.sat uadd.sat usub.sat sshl.sat ushl.sat exp exp2 exp10 log log2 log10 sin cos tan asin acos atan "
    "atan2 sinh cosh tanh pow powi ldexp fptosi.sat fptoui.sat".split()
)


def find_handles(function: Function, results: Iterable[Instruction]) -> dict[str, Instruction]:
    """The instructions that give handles, by name.

    Args:
        function: The function.
        results: The tensor operations that return handles.

    Raises:
        VerifyError: Something is done to a handle that is not done element by element.
    """
    handles = {i.result: i for i in results if i.result is not None}
    candidates = [i for i in function.instructions() if is_elementwise_on_handles(i)] if handles else []
    size = -1
    while len(handles) != size:
        size = len(handles)
        for i in candidates:
            if i.result is not None and any(_is_handle(o, handles) for o in i.operands):
                handles[i.result] = i
    for instruction in function.instructions() if handles else ():
        _check_uses(instruction, handles)
    return {i.result: i for i in function.instructions() if i.result is not None and i.result in handles}


def is_elementwise_on_handles(instruction: Instruction) -> bool:
    """Whether an instruction may give a handle (if it is given one): it works element by element, or is a phi."""
    if not is_handle_type(instruction.type):
        return False
    return (
        instruction.opcode in ELEMENTWISE_OPCODES
        or instruction.opcode == "phi"
        or elementwise_name(instruction) is not None
    )


def elementwise_name(instruction: Instruction) -> str | None:
    """`fma` of a call of `llvm.fma.nxv1f32`; None for other instructions."""
    callee = instruction.callee or ""
    stem = callee.strip('"').removeprefix("llvm.").split(".nxv1", 1)[0]
    return stem if instruction.opcode == "call" and callee.startswith("llvm.") and stem in _INTRINSICS else None


def is_handle_type(type_: Type) -> bool:
    """`<vscale x 1 x T>` with numbers for elements."""
    if not isinstance(type_, VectorType) or isinstance(type_.element, PointerType):
        return False
    return type_.scalable and type_.count == 1


def _is_handle(value: Value, handles: dict[str, Instruction]) -> bool:
    return isinstance(value, Local) and value.name in handles


def _check_uses(instruction: Instruction, handles: dict[str, Instruction]) -> None:
    used = [o for o in instruction.operands if _is_handle(o, handles)]
    if instruction.result in handles and not is_tensor_call(instruction):
        _check_operands(instruction, handles)
    elif used and not is_tensor_call(instruction) and instruction.opcode != "#dbg":
        what = f"@{instruction.callee}" if instruction.callee else f"'{instruction.opcode}'"
        message = (
            f"{used[0]} stands for a tensor whose size is known only at run time: "
            f"llvm.tensor.typeinfo and elementwise instructions take it, {what} does not"
        )
        raise VerifyError(message, operand_span(instruction, used[0]))


def _check_operands(instruction: Instruction, handles: dict[str, Instruction]) -> None:
    """What is no handle must be the same in all elements; a phi has nothing but handles."""
    for operand in instruction.args if instruction.is_call else instruction.operands:
        if not is_handle_type(operand.type) or _is_handle(operand, handles):
            continue
        if instruction.opcode != "phi" and (isinstance(operand, Local) or is_uniform(operand)):
            continue
        message = f"{operand} is no result of a tensor operation, so its number of elements is not known"
        raise VerifyError(message, operand_span(instruction, operand))


def is_uniform(value: Value) -> bool:
    """Whether a constant is the same in all elements."""
    is_shuffle = isinstance(value, ConstExpr) and value.opcode == "shufflevector"
    return isinstance(value, (Splat, Keyword)) or is_shuffle


def uniform_scalar(value: Value, definitions: dict[str, Instruction]) -> Value | None:
    """The number that every element of a value is; None where it is no splat.

    `splat (T x)`, `zeroinitializer`, and the shuffle of an `insertelement` into lane 0.
    """
    from tlx.ir.values import zero

    if isinstance(value, Splat):
        return value.element
    element = value.type.element if isinstance(value.type, VectorType) else value.type
    if isinstance(value, Keyword):
        return zero(element) if value.word == "zeroinitializer" else Keyword(element, value.word)
    operands = _operands(value, "shufflevector", definitions)
    if operands is None or str(operands[2]) not in ("zeroinitializer", "undef", "poison"):
        return None
    inserted = _operands(operands[0], "insertelement", definitions)
    return inserted[1] if inserted is not None and str(inserted[2]) == "0" else None


def _operands(value: Value, opcode: str, definitions: dict[str, Instruction]) -> list[Value] | None:
    if isinstance(value, ConstExpr):
        return list(value.operands) if value.opcode == opcode else None
    definition = definitions.get(value.name) if isinstance(value, Local) else None
    return definition.operands if definition is not None and definition.opcode == opcode else None
