"""Undoing C's calling convention: arguments in memory, and small vectors passed as scalars, become values again.

    %r = call i32 (...) @tensor_typeinfo(ptr byval(<16 x float>) align 64 %slot, ...)
    ->
    %v = load <16 x float>, ptr %slot, align 64
    %r = call i32 @tensor_typeinfo(<16 x float> %v, ...)

    call void @tensor_matmul(ptr sret(<16 x float>) align 64 %slot, i32 %a, i32 %b)
    ->
    %v = call <16 x float> @tensor_matmul(i32 %a, i32 %b)
    store <16 x float> %v, ptr %slot, align 64

The slot may be reused while the token is live, so the value is loaded at the call. Where a convention passes plain
pointers (AArch64), the slot is a variable of a vector type.

rustc passes a struct of an array in the same way, as bytes from LLVM 17 or so on; the name says what they are. A slot
that is copied whole is loaded and stored:

    ptr byval([64 x i8]) %slot of @tensor_typeinfo_f32                             load <16 x float>, ptr %slot
    call void @llvm.memcpy.p0.p0.i64(ptr %slot, ptr %other, i64 64, i1 false)  ->  load and store of <16 x float>

C's convention on x86-64 passes a vector of 2, 4 or 8 bytes as `i16`, `i32` or `double`, and passes float and narrow
integers to a variadic function as double and int:

    double 0x1000000010                     ->  <2 x i32> <i32 16, i32 16>
    bitcast (<2 x i32> %shape to double)    ->  <2 x i32> %shape
    load double, ptr @shape                 ->  load <2 x i32>, ptr @shape
    i32 %x, three elements i8               ->  bitcast (trunc i32 %x to i24) to <3 x i8>
    i32 16843009, elements i8               ->  <4 x i8> <i8 1, i8 1, i8 1, i8 1>
    double %x, elements float               ->  float (fptrunc double %x to float)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Final

from tlx.frontends.c_header.placeholders import (
    ELEMENTS,
    PREFIX,
    PlaceholderCall,
    c_name,
    callee_name,
    placeholder_calls,
)
from tlx.intrinsics import Operand, OperandKind
from tlx.ir.abi import attribute_pointee
from tlx.ir.builder import Builder
from tlx.ir.constant_folding import ConstantFolder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import named_types
from tlx.ir.rewrite import definitions
from tlx.ir.types import (
    DOUBLE,
    FLOAT,
    I1,
    I8,
    I32,
    VOID,
    ArrayType,
    FloatType,
    IntType,
    NamedType,
    PointerType,
    StructType,
    Type,
    VectorType,
    bits_of,
    bytes_of,
    is_scalar_number,
    next_power_of_two,
)
from tlx.ir.values import Constant, ConstExpr, ConstFloat, ConstInt, Global, Local, Value, const_float, const_ints

_ALIGN: Final = re.compile(r"\balign (\d+)")


def pass_by_value(module: Module, function: Function) -> None:
    """Rewrite the placeholder calls to a function so that they take and return values.

    Raises:
        VerifyError: A tensor is passed as bytes, and the name of the function does not say its element type.
    """
    known = definitions(function)
    slots: dict[str, VectorType] = {}
    for call in placeholder_calls(function):
        result = _indirect_result(module, call)
        skipped = 0 if result is None else 1
        for number, value in enumerate(call.args):
            type_ = result if number < skipped else _passed_type(module, call, known, number)
            slot = _slot_of(known, value)
            if isinstance(type_, VectorType) and slot is not None and slot.result is not None:
                slots[slot.result] = type_
        args = [_argument_value(module, function, call, known, number) for number in range(skipped, len(call.args))]
        if result is None:
            call.rewrite(args)
        else:
            _return_value(module, function, call, args, result)
    if slots:
        _copy_as_values(module, function, known, slots)


def _indirect_result(module: Module, call: PlaceholderCall) -> Type | None:
    attributes = call.instruction.arg_attributes
    type_ = attribute_pointee(attributes[0], "sret") if attributes and call.instruction.type == VOID else None
    return None if type_ is None else _flattened(module, call, type_, call.placeholder.element)


def _flattened(module: Module, call: PlaceholderCall, type_: Type, element: Type | None) -> Type:
    """The vector that a struct of an array holds; other types as they are.

    Args:
        module: The module.
        call: The call.
        type_: The type that is passed in memory.
        element: Type of the elements, if that is known.
    """
    count, held = 1, type_
    while not isinstance(held, VectorType):
        if isinstance(held, NamedType):
            held = named_types(module.source).get(held.name, VOID)
        elif isinstance(held, StructType) and len(held.elements) == 1:
            held = held.elements[0]
        elif isinstance(held, ArrayType):
            count, held = count * held.count, held.element
        else:
            break
    if held is type_ or not is_scalar_number(held):
        return type_
    if element is None and held == I8:
        raise call.error(
            f"the tensor is passed as {count} bytes, whose element type is not known; {_element_hint(call)}"
        )
    element = element or held
    size = count * bits_of(held)
    if size % bits_of(element):
        raise call.error(f"the tensor has {size // 8} bytes, which is not a whole number of elements {element}")
    return VectorType(size // bits_of(element), element)


def _return_value(module: Module, function: Function, call: PlaceholderCall, args: list[Value], type_: Type) -> None:
    pointer, attributes = call.args[0], call.instruction.arg_attributes[0]
    call.instruction.result = function.names.fresh("result")
    call.rewrite(args, type_)
    builder = Builder(module, function, call.block, call.index + 1)
    builder.store(call.instruction.value, pointer, _alignment(attributes, type_))


def _argument_value(
    module: Module, function: Function, call: PlaceholderCall, known: dict[str, Instruction], number: int
) -> Value:
    """An argument, loaded if it is passed in memory."""
    value, type_ = call.args[number], _passed_type(module, call, known, number)
    if type_ is None:
        return value
    builder = Builder(module, function, call.block, call.index)
    return builder.load(type_, value, _alignment(call.instruction.arg_attributes[number], type_), "passed")


def _passed_type(module: Module, call: PlaceholderCall, known: dict[str, Instruction], number: int) -> Type | None:
    """The type of an argument that is passed in memory; None if it is passed as it is."""
    value = call.args[number]
    if not isinstance(value.type, PointerType):
        return None
    type_ = attribute_pointee(call.instruction.arg_attributes[number], "byval")
    if type_ is not None:
        is_shape = _may_be(call, number, OperandKind.DIMS)
        return _flattened(module, call, type_, I32 if is_shape else call.placeholder.element)
    return None if _may_be(call, number, OperandKind.POINTER) else _slot_type(known, value)


def _slot_of(known: dict[str, Instruction], pointer: Value) -> Instruction | None:
    """The variable whose address a value is."""
    definition = known.get(pointer.name) if isinstance(pointer, Local) else None
    while definition is not None and definition.opcode == "bitcast" and isinstance(definition.operands[0], Local):
        definition = known.get(definition.operands[0].name)
    return definition if definition is not None and definition.opcode == "alloca" else None


def _copy_as_values(
    module: Module, function: Function, known: dict[str, Instruction], slots: dict[str, VectorType]
) -> None:
    """Rewrite copies of whole slots."""
    for block in function.blocks:
        for copy in [i for i in block.instructions if (callee_name(i) or "").startswith("llvm.memcpy.")]:
            destination, source, size, is_volatile = copy.args[:4]
            slot, other = _slot_of(known, destination), _slot_of(known, source)
            if slot is None or other is None or slot.result is None or not isinstance(size, ConstInt):
                continue
            type_ = slots.get(slot.result) or slots.get(other.result or "")
            if type_ is None or size.value != bytes_of(type_) or is_volatile != ConstInt(I1, 0):
                continue
            place = _position(block, copy)
            builder = Builder(module, function, block, place)
            aligned = [_alignment(attributes, type_) for attributes in copy.arg_attributes[:2]]
            builder.store(builder.load(type_, source, aligned[1], "copied"), destination, aligned[0])
            block.instructions.remove(copy)


def _may_be(call: PlaceholderCall, number: int, kind: OperandKind) -> bool:
    """Whether an argument is an operand of that kind in some form of the operation."""
    forms = call.placeholder.intrinsic.forms
    return any(number < len(form) and form[number].kind is kind for form in forms)


def _slot_type(known: dict[str, Instruction], pointer: Value) -> Type | None:
    """The vector type of the variable that a pointer is the address of."""
    definition = known.get(pointer.name) if isinstance(pointer, Local) else None
    if definition is None or definition.opcode != "alloca":
        return None
    return definition.source_type if isinstance(definition.source_type, VectorType) else None


def _alignment(attributes: str, type_: Type) -> int:
    """The alignment in the attributes, else that of an element."""
    match = _ALIGN.search(attributes)
    if match is not None:
        return int(match.group(1))
    return bytes_of(type_.element) if isinstance(type_, VectorType) else 1


_EXTENSIONS: Final = {"fpext", "sext", "zext"}


class Coercion:
    """Conversions of the arguments of placeholder calls in one function."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.definitions = definitions(function)
        self._blocks: dict[str, Block] = {}

    # Shapes ----------------------------------------------------------------------------------------------------

    def dims(self, call: PlaceholderCall, operand: Operand, value: Value) -> Value:
        """A shape as `<n x i32>`; folded to a constant if possible.

        Raises:
            VerifyError: The argument is not a vector of int.
        """
        type_ = _dims_type(value.type)
        if type_ is None:
            got = f"got {value.type}"
            raise call.error(f"operand {operand.name} must be a vector of int of the tensor's rank; {got}", value)
        vector = self._as_vector(call, value, type_)
        if isinstance(vector, Local):
            numbers = ConstantFolder(self.function, self.module).ints(vector)
            return vector if numbers is None else const_ints(I32, numbers)
        return vector

    def _as_vector(self, call: PlaceholderCall, value: Value, type_: VectorType) -> Value:
        value = self._without_casts(value, type_)
        if value.type == type_:
            return value
        bits = _constant_bits(value)
        if bits is not None:
            return _vector_of_bits(bits, type_, big_endian=self.module.is_big_endian)
        pointer = self._loaded_global(value)
        if pointer is not None:
            return self._load_before(value, pointer, type_)
        return Builder(self.module, self.function, call.block, call.index).cast("bitcast", value, type_, "vector")

    def _without_casts(self, value: Value, type_: Type) -> Value:
        """The first value of a type in the chain of casts that ends in `value`, or `value` itself."""
        return next((origin for origin in reversed(self._before_casts(value)) if origin.type == type_), value)

    def _before_casts(self, value: Value) -> list[Value]:
        """A value and the values that it was cast from; in unreachable code the casts may form a cycle."""
        seen = [value]
        while (definition := self.definition(seen[-1])) is not None and definition.opcode == "bitcast":
            source = definition.operands[0]
            if source in seen:
                break
            seen.append(source)
        return seen

    def _loaded_global(self, value: Value) -> Global | None:
        """The global variable that a value was loaded from."""
        definition = self.definition(value)
        if definition is None or definition.opcode != "load" or definition.flags:
            return None
        pointer = definition.operands[0]
        while isinstance(pointer, ConstExpr) and pointer.opcode == "bitcast":
            pointer = pointer.operands[0]
        return pointer if isinstance(pointer, Global) else None

    def _load_before(self, value: Value, pointer: Global, type_: VectorType) -> Value:
        """A load of another type next to the load that defines a value."""
        load = self.definitions[str(value).removeprefix("%")]
        block = next(b for b in self.function.blocks if any(i is load for i in b.instructions))
        builder = Builder(self.module, self.function, block, _position(block, load))
        return builder.load(type_, pointer, load.align or 4, "vector")

    def definition(self, value: Value) -> Instruction | None:
        """The instruction that defines a value."""
        return self.definitions.get(value.name) if isinstance(value, Local) else None

    # Tensors ---------------------------------------------------------------------------------------------------

    def flat(self, call: PlaceholderCall, value: Value, count: int | None) -> Value:
        """A tensor as a flattened vector.

        Args:
            call: The call that it is an argument of.
            value: The argument.
            count: Number of elements by the shape, None if that is not known.

        Raises:
            VerifyError: It is not a vector, or its element type is unknown.
        """
        element = call.placeholder.element
        if isinstance(value.type, VectorType):
            if element not in (None, value.type.element):
                raise call.error(f"the name states elements of type {element}, but the tensor is {value.type}", value)
            return value
        if count is None:
            raise call.error(f"a tensor that arrives as {value.type} needs a constant shape", value)
        if isinstance(value.type, PointerType):
            return self._pointee(call, value, value.type, count)
        return self._small(call, value, count)

    def _pointee(self, call: PlaceholderCall, value: Value, type_: PointerType, count: int) -> Value:
        """The vector that a pointer points to at the call."""
        element = call.placeholder.element or type_.pointee
        if element is None or not is_scalar_number(element):
            raise call.error(f"got a pointer whose element type is not known; {_element_hint(call)}", value)
        builder = Builder(self.module, self.function, call.block, call.index)
        return builder.load(VectorType(count, element), value, max(1, bits_of(element) // 8), "tensor")

    def _small(self, call: PlaceholderCall, value: Value, count: int) -> Value:
        """A vector of at most 8 bytes, passed as a scalar."""
        value = self._narrowed(call, value, count)
        if not is_scalar_number(value.type) or bits_of(value.type) % count:
            raise call.error(f"expected a vector of {count} elements, as the shape requires, got {value.type}", value)
        width = bits_of(value.type) // count
        element = call.placeholder.element or self._element_before_casts(value, count)
        if element is None:
            message = f"vectors of {bits_of(value.type) // 8} bytes lose their element type in a call"
            raise call.error(f"{message}; {_element_hint(call, width)}", value)
        if bits_of(element) != width:
            elements = f"{count} elements of {width} bits, as the shape requires"
            raise call.error(f"{elements}, are not of type {element}", value)
        return self._as_vector(call, value, VectorType(count, element))

    def _narrowed(self, call: PlaceholderCall, value: Value, count: int) -> Value:
        """The low bits of a scalar that is wider than the vector: 3 bytes are passed as 4, 6 as 8."""
        element = call.placeholder.element
        if element is None or not is_scalar_number(value.type):
            return value
        bits, wide = count * bits_of(element), bits_of(value.type)
        if bits >= wide or wide not in (passed_scalar_bits(bits), 32 if bits <= 16 else 0):  # 32: AArch64
            return value
        builder = Builder(self.module, self.function, call.block, call.index)
        number = builder.cast("bitcast", value, IntType(wide), "bits")
        return builder.cast("trunc", number, IntType(bits), "narrow")

    def _element_before_casts(self, value: Value, count: int) -> Type | None:
        """The element type of the vector that was cast to a scalar."""
        value = self._before_casts(value)[-1]
        if isinstance(value.type, VectorType) and value.type.count == count:
            return value.type.element
        return None

    # Scalars ---------------------------------------------------------------------------------------------------

    def scalar(self, call: PlaceholderCall, value: Value, element: Type) -> Value:
        """A number as one of the tensor's element type, undoing C's promotions.

        Raises:
            VerifyError: The conversion is ambiguous.
        """
        if value.type == element:
            return value
        definition = self.definition(value)
        if definition is not None and definition.opcode in _EXTENSIONS and definition.operands[0].type == element:
            return definition.operands[0]
        builder = Builder(self.module, self.function, call.block, call.index)
        if isinstance(value.type, FloatType) and isinstance(element, FloatType):
            return _float_as(builder, value, value.type, element)
        if isinstance(value.type, IntType) and isinstance(element, IntType):
            if isinstance(value, ConstInt) and (value.type.bits > element.bits or value.value >= 0):
                return ConstInt(element, _wrapped(value.value, element.bits))
            if value.type.bits > element.bits:
                return builder.cast("trunc", value, element, "scalar")
        raise call.error(f"scalar is {value.type} and the tensor's elements are {element}: cast it to that type", value)


def passed_scalar_bits(bits: int) -> int:
    """Width of the scalar in which a small vector of `bits` bits is passed: a power of two, at least 8."""
    return max(8, next_power_of_two(bits))


def _float_as(builder: Builder, value: Value, type_: FloatType, element: FloatType) -> Value:
    if isinstance(value, ConstFloat) and element in (FLOAT, DOUBLE):
        return const_float(element, value.value)
    return builder.cast("fptrunc" if type_.bits > element.bits else "fpext", value, element, "scalar")


def _wrapped(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if bits > 1 and number >> (bits - 1) else number


def _position(block: Block, instruction: Instruction) -> int:
    return next(i for i, other in enumerate(block.instructions) if other is instruction)


def _dims_type(type_: Type) -> VectorType | None:
    """The vector of int that is passed in this type."""
    if isinstance(type_, VectorType) and type_.element == I32:
        return type_
    if type_ == DOUBLE or (isinstance(type_, IntType) and type_.bits in (32, 64)):
        return VectorType(bits_of(type_) // 32, I32)
    return None


def _constant_bits(value: Value) -> int | None:
    """The bits of a scalar constant."""
    if isinstance(value, ConstInt) and isinstance(value.type, IntType):
        return value.value & ((1 << value.type.bits) - 1)
    if isinstance(value, ConstFloat) and value.type == DOUBLE:
        if value.spelling.startswith("0x"):
            return int(value.spelling, 16)
        return int.from_bytes(struct.pack("<d", float(value.spelling)), "little")
    return None


def _vector_of_bits(bits: int, type_: VectorType, *, big_endian: bool) -> Constant:
    """A vector constant from its bits, of which the first element's are the lowest unless numbers are big-endian."""
    element = type_.element
    width = bits_of(element)
    lanes = [bits >> (width * lane) & ((1 << width) - 1) for lane in range(type_.count)]
    lanes = lanes[::-1] if big_endian else lanes
    if isinstance(element, IntType):
        return const_ints(element, [_wrapped(lane, width) for lane in lanes])
    vector: Sequence[Value] = [_float_of_bits(lane, element) for lane in lanes]
    from tlx.ir.values import const_vector

    return const_vector(vector)


def _float_of_bits(bits: int, element: Type) -> Value:
    if element == DOUBLE:
        return ConstFloat(element, f"0x{bits:016X}")
    if element == FLOAT:
        number = struct.unpack("<f", struct.pack("<I", bits))[0]
        return const_float(FLOAT, number)
    return ConstFloat(element, f"0x{'R' if str(element) == 'bfloat' else 'H'}{bits:04X}")


def _element_hint(call: PlaceholderCall, width: int | None = None) -> str:
    """A hint how to give an element type of that many bits."""
    stem = f"{PREFIX}{c_name(call.placeholder.intrinsic.name)}"
    names = [f"{stem}_{name}" for name, element in ELEMENTS.items() if width in (None, bits_of(element))]
    return f"say it in the name: {' or '.join(names) or f'{stem}_<element type>'}"
