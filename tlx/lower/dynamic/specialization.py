"""Functions of run-time sizes, specialised for known sizes, as a device compiles them before a call.

    define void @f(ptr %x, ptr %y, i32 %n) {                      with %n = 100:
      %s = insertelement <1 x i32> undef, i32 %n, i32 0
      %t = call token @llvm.tensor.load(ptr ... %x, <1 x i32> %s, ...)          <1 x i32> <i32 100>
      %v = call <vscale x 1 x float> @llvm.tensor.exp(token %t)                 <100 x float>

The sizes are integer parameters that extents, paddings, pitches or branches depend on. They remain parameters, but
are no longer used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.intrinsics import lookup
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.rewrite import definitions, remove_dead, replace_uses, set_operand
from tlx.ir.tensors.calls import is_tensor_call, operand_span
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import DynamicOp, DynamicTensor, FunctionTensors, Tensor, is_handle_type
from tlx.ir.transform import renamed
from tlx.ir.types import I32, IntType, VectorType, scalar_of
from tlx.ir.values import ConstInt, Local, Value, const_ints

_HANDLE: Final = re.compile(r"<vscale x 1 x ([^<>]+)>")
_MANGLED: Final = re.compile(r"\bnxv1(?=[a-z])")
_BRANCHES: Final = ("br", "switch")


def size_parameters(module: Module) -> dict[str, tuple[int, ...]]:
    """The functions with tensors of run-time sizes, and the numbers of the parameters that are sizes."""
    found: dict[str, tuple[int, ...]] = {}
    for function in module.functions:
        if any(is_handle_type(i.type) or any(map(_is_computed, _extents(i))) for i in function.instructions()):
            found[function.name] = _sizes(function)
    return found


def _extents(instruction: Instruction) -> Sequence[Value]:
    """The operands of a tensor operation that are extents, paddings, pitches and the like, as vectors."""
    if not is_tensor_call(instruction):
        return []
    intrinsic = lookup(instruction.callee or "")
    has_data = intrinsic is not None and intrinsic.effects == "typeinfo"  # a vector of elements, or a pointer, first
    return [a for a in instruction.args[has_data:] if isinstance(a.type, VectorType) and a.type.element == I32]


def _is_computed(value: Value) -> bool:
    return isinstance(value, Local) and not is_handle_type(value.type)


def _sizes(function: Function) -> tuple[int, ...]:
    defined = definitions(function)
    pending = [operand for i in function.instructions() for operand in _operands_of_sizes(i)]
    names: set[str] = set()
    while pending:
        value = pending.pop()
        if isinstance(value, Local) and value.name not in names:
            names.add(value.name)
            definition = defined.get(value.name)
            pending += definition.operands if definition is not None and definition.opcode != "load" else []
    arguments = enumerate(function.arguments)
    return tuple(number for number, a in arguments if isinstance(a.type, IntType) and a.name in names)


def _operands_of_sizes(instruction: Instruction) -> list[Value]:
    """The operands on which sizes, or what runs, depend."""
    if instruction.opcode in _BRANCHES:
        return instruction.operands[:1]
    return [a for a in instruction.args if scalar_of(a.type) == I32] if is_tensor_call(instruction) else []


def specialize(text: str, name: str, sizes: Mapping[int, int], source: str = "<string>") -> Module:
    """A function of a module, alone, for some sizes.

    Args:
        text: The module.
        name: The function.
        sizes: The sizes, by the numbers of their parameters.
        source: The module's name in diagnostics.

    Raises:
        VerifyError: With these sizes, a rule of the tensor intrinsics is violated.
        LoweringError: An extent is not positive, or is not computed from parameters alone.
    """
    module = parse(text, source)
    module.remove(*(function for function in module.functions if function.name != name))
    function = module.function(name)
    _separate_splats(function)
    tensors = analyse(module, function)
    known = {str(function.arguments[number].name): size for number, size in sizes.items()}
    for argument in function.arguments:
        if argument.name in known:
            replace_uses(function, argument.name, ConstInt(argument.type, known[argument.name]))
    folder = ConstantFolder(function, module)
    for instruction in function.instructions():
        if is_tensor_call(instruction):
            _fold(instruction, folder)
    counts = _Counts(function, tensors, folder, known)
    for instruction in function.instructions():
        count = counts.of(instruction)
        if count is not None:
            replaced = _HANDLE.sub(rf"<{count} x \1>", instruction.text)
            instruction.text = _MANGLED.sub(f"v{count}", replaced)
    lines = str(module).splitlines()
    return parse(
        "\n".join(line for line in lines if not (line.startswith("declare") and "vscale" in line)) + "\n", source
    )


def _separate_splats(function: Function) -> None:
    """Give each instruction splats of its own: one splat may be for handles of several sizes."""
    defined = definitions(function)
    shared: list[Instruction] = []
    for block in function.blocks:
        instructions: list[Instruction] = []
        for instruction in block.instructions:
            for index, operand in enumerate(instruction.operands):
                splat = defined.get(operand.name) if isinstance(operand, Local) else None
                if splat is None or splat.opcode != "shufflevector" or not is_handle_type(splat.type):
                    continue
                inserted = splat.operands[0]
                parts = [defined[inserted.name], splat] if isinstance(inserted, Local) else [splat]
                copies = _copies(function, parts)
                instructions += copies
                set_operand(instruction, index, copies[-1].value)
                shared += parts
            instructions.append(instruction)
        block.instructions = instructions
    remove_dead(function, shared)


def _copies(function: Function, parts: Sequence[Instruction]) -> list[Instruction]:
    """Copies of instructions, of which each may use the ones before."""
    names: dict[str, Value] = {}
    for part in parts:
        names[part.value.name] = Local(part.type, function.names.fresh(part.value.name))
    return [renamed(part, names, {name: str(value) for name, value in names.items()}) for part in parts]


def _fold(call: Instruction, folder: ConstantFolder) -> None:
    """Replace computed extents by constants."""
    computed = [extents for extents in _extents(call) if _is_computed(extents)]
    for index, operand in enumerate(call.operands):
        if any(operand is extents for extents in computed):
            numbers = folder.ints(operand)
            if numbers is None:
                message = f"{operand} is not computed from parameters alone: a device has to know sizes before a call"
                raise LoweringError(message, operand_span(call, operand))
            set_operand(call, index, const_ints(I32, numbers))


class _Counts:
    """The numbers of elements of the handles of a function."""

    def __init__(
        self, function: Function, tensors: FunctionTensors, folder: ConstantFolder, sizes: Mapping[str, int]
    ) -> None:
        self._folder, self._tensors, self._sizes = folder, tensors, sizes
        self._counts: dict[str, int] = {}
        for op in tensors.dynamic.ops:
            if op.like is not None and op.instruction.result is not None:
                self._counts[op.instruction.result] = self._result(op)
        others = [(i, _handles(i)) for i in function.instructions() if not is_tensor_call(i)]
        known = -1
        while known != len(self._counts):
            known = len(self._counts)
            for instruction, names in others:
                count = self.of(instruction)
                if count is not None:
                    self._counts |= dict.fromkeys(names, count)  # of splats, too, which are operands

    def of(self, instruction: Instruction) -> int | None:
        """The number of elements of the handles that an instruction uses or defines; None if there are none."""
        name = instruction.result or ""
        if name in self._counts:
            return self._counts[name]
        token = self._tensors.dynamic.tokens.get(name)
        if token is not None:
            return self._type(token).count
        operands = (o.name for o in instruction.operands if isinstance(o, Local))
        return next((self._counts[operand] for operand in operands if operand in self._counts), None)

    def _result(self, op: DynamicOp) -> int:
        assert op.like is not None
        types = [self._type(tensor) for tensor in op.tensors]
        dims = [self._numbers(value) for value in op.dims]
        return op.intrinsic.infer(types, dims, op.like.element)[0].count

    def _type(self, tensor: Tensor | DynamicTensor) -> TensorType:
        if isinstance(tensor, Tensor):
            return tensor.type
        shape, padding = self._numbers(tensor.shape), self._numbers(tensor.padding)
        try:
            return TensorType(tensor.element, shape, tensor.layout, padding)
        except ValueError as error:
            raise LoweringError(str(error), tensor.definition.span) from None

    def _numbers(self, value: Value) -> tuple[int, ...]:
        if isinstance(value.type, VectorType):
            return self._folder.ints(value) or ()
        number = self._sizes.get(value.name) if isinstance(value, Local) else None
        number = self._folder.integer(value) if number is None else number
        return () if number is None else (number,)


def _handles(instruction: Instruction) -> list[str]:
    """The names of the handles, and splats, that an instruction uses or defines."""
    names = [o.name for o in instruction.operands if isinstance(o, Local) and is_handle_type(o.type)]
    return [*names, instruction.result] if instruction.result and is_handle_type(instruction.type) else names
