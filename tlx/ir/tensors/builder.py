"""Building tensor operations: `t = b.tensor_load(p, type_)`, `m = b.matmul(t, u)`, `b.tensor_store(q, t)`.

Callees have canonical, mangled names and are declared. The element type of an opaque pointer or an `i8*` is given by an
`elementtype(T)` attribute, so that it need not be inferred from the users of the token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tlx.intrinsics import Intrinsic, lookup
from tlx.intrinsics.products import EMPTY
from tlx.intrinsics.small_floats import FROM_SMALL, NEAREST, TO_SMALL, SmallFloat
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import TAIL_MARKERS, Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import declare_function
from tlx.ir.tensors.calls import canonical_name
from tlx.ir.types import (
    I1,
    I8,
    I32,
    METADATA,
    TOKEN,
    VOID,
    FloatType,
    IntType,
    PointerType,
    Type,
    VectorType,
    function_of,
)
from tlx.ir.values import Aggregate, ConstInt, Keyword, Local, OpaqueConstant, Value, const_ints, const_vector

Dims = Sequence[Sequence[int]]
ResultType = TensorType | VectorType | IntType | FloatType | None


class TensorBuilder(Builder):
    """A `Builder` that also emits `llvm.tensor.*` calls.

    Results are `Local` values: tokens of `typeinfo` and `tensor_load`, flattened vectors of the operations. The typing
    rule of the table gives an operation's result type. `result` selects one of several allowed types (a tensor type or
    its vector), or the element type if that is wider than the operands'.

    Attributes:
        tensor_types: Types of the tokens and results that this builder made, by `%name`.
    """

    def __init__(
        self, module: Module, function: Function, block: Block | None = None, index: int | None = None
    ) -> None:
        super().__init__(module, function, block, index)
        self.tensor_types: dict[str, TensorType] = {}

    # Tokens ----------------------------------------------------------------------------------------------------

    def typeinfo(self, value: Value, type_: TensorType | None = None, name: str = "") -> Local:
        """A token for a flattened vector: `token @llvm.tensor.typeinfo(<E x T> value, shape, layout, padding)`.

        The type may be left out for results of this builder.
        """
        type_ = type_ or self._type_of(value)
        vectors = _vectors(type_)
        return self._tensor_call("typeinfo", TOKEN, [value, *vectors], name or "tensor", type_).value

    def tensor_load(
        self,
        pointer: Value,
        type_: TensorType,
        pitches: Sequence[int] | None = None,
        name: str = "",
        metadata: str = "",
    ) -> Local:
        """A token for a tensor in memory.

        Args:
            pointer: Address of its first element.
            type_: Its type.
            pitches: Positions of each dimension in the enclosing array; None and 0 mean dense.
            name: Name of the token.
            metadata: Such as `, !tlx.no_subnormals !{}`.
        """
        pointer = self.retype(pointer, type_.element)
        vectors = [*_vectors(type_), _pitches(type_, pitches)]
        call = self._tensor_call("load", TOKEN, [pointer, *vectors], name or "tensor", type_, type_.element)
        call.text += metadata
        return call.value

    def tensor_store(
        self,
        pointer: Value,
        token: Value,
        pitches: Sequence[int] | None = None,
        type_: TensorType | None = None,
        metadata: str = "",
    ) -> Instruction:
        """Write a tensor to memory.

        Args:
            pointer: Address of its first element.
            token: The tensor.
            pitches: Positions of each dimension in the enclosing array; None and 0 mean dense.
            type_: The token's type; may be left out for tokens of this builder.
            metadata: Such as `, !nontemporal !0`.
        """
        type_ = type_ or self._type_of(token)
        pointer = self.retype(pointer, type_.element)
        strides = _pitches(type_, pitches)
        call = self._tensor_call("store", VOID, [pointer, token, strides], "")
        call.text += metadata
        return call

    def from_small_float(self, vector: Value, format_: SmallFloat, element: Type, name: str = "") -> Local:
        """The numbers of a vector of bytes, which have a format of 8 bits."""
        assert isinstance(vector.type, VectorType)
        result = VectorType(vector.type.count, element)
        operands = [vector, OpaqueConstant(METADATA, format_.metadata)]
        return self.call_intrinsic(FROM_SMALL, [result, vector.type], result, operands, name)

    def to_small_float(self, vector: Value, format_: SmallFloat, name: str = "", *, saturates: bool = False) -> Local:
        """Floats, rounded to a format of 8 bits, as a vector of bytes."""
        assert isinstance(vector.type, VectorType)
        result = VectorType(vector.type.count, I8)
        operands = [
            vector,
            OpaqueConstant(METADATA, format_.metadata),
            OpaqueConstant(METADATA, NEAREST),
            ConstInt(I1, int(saturates)),
        ]
        return self.call_intrinsic(TO_SMALL, [result, vector.type], result, operands, name)

    def tovector(self, token: Value, type_: TensorType | VectorType | None = None, name: str = "") -> Local:
        """The flattened vector of a token."""
        return self._operation("tovector", type_ or self._type_of(token), [token], (), name)

    # Run-time extents -----------------------------------------------------------------------------------------

    def dynamic_typeinfo(self, handle: Value, shape: Sequence[Value], layout: Sequence[int]) -> Local:
        """A token for a `<vscale x 1 x T>` whose extents are i32 values, without padding."""
        vectors = [self.gathered(shape), const_ints(I32, layout), const_ints(I32, [0] * len(layout))]
        return self._tensor_call("typeinfo", TOKEN, [handle, *vectors], "tensor").value

    def dynamic_load(
        self, pointer: Value, element: Type, shape: Sequence[Value], layout: Sequence[int], pitches: Sequence[Value]
    ) -> Local:
        """A token for a tensor in memory whose extents and pitches are i32 values, without padding."""
        pointer = self.retype(pointer, element)
        padding = const_ints(I32, [0] * len(layout))
        args = [pointer, self.gathered(shape), const_ints(I32, layout), padding, self.gathered(pitches)]
        return self._tensor_call("load", TOKEN, args, "tensor", element=element).value

    def dynamic_store(self, pointer: Value, element: Type, token: Value, pitches: Sequence[Value]) -> Instruction:
        """Write a tensor whose element type is passed; the pitches are i32 values."""
        args = [self.retype(pointer, element), token, self.gathered(pitches)]
        return self._tensor_call("store", VOID, args, "")

    def gathered(self, elements: Sequence[Value]) -> Value:
        """A vector whose elements are scalars of one type."""
        if all(isinstance(element, ConstInt) for element in elements):
            return const_vector(elements)
        vector: Value = Keyword(VectorType(len(elements), elements[0].type), "undef")
        for k, element in enumerate(elements):
            vector = self.insert_element(vector, element, k)
        return vector

    # Operations ------------------------------------------------------------------------------------------------

    def matmul(self, x: Value, y: Value, result: ResultType = None, name: str = "") -> Local:
        """`L(x) @ L(y)`, row-major."""
        return self._operation("matmul", result, [x, y], (), name)

    def mma(self, kind: str, acc: Value, a: Value, b: Value, result: ResultType = None, name: str = "") -> Local:
        """`L(acc) + L(a) @ L(b)`; `kind` is umma, smma, usmma or summa."""
        return self._operation(kind, result, [acc, a, b], (), name)

    def contract(
        self,
        a: Value,
        b: Value,
        axes_a: Sequence[int] = (),
        axes_b: Sequence[int] = (),
        batch: tuple[Sequence[int], Sequence[int]] | None = None,
        result: ResultType = None,
        name: str = "",
    ) -> Local:
        """Sum over pairs of dimensions, or over none; `batch` names the batch dimensions of `a` and of `b`."""
        lists = (axes_a, axes_b, *(batch or ()))
        dims = [axes or EMPTY for axes in lists] if any(lists) else []
        return self._operation("contract", result, [a, b], dims, name)

    def convolution(
        self,
        x: Value,
        w: Value,
        windows: tuple[Sequence[int], Sequence[int], Sequence[int]] | None = None,
        result: ResultType = None,
        name: str = "",
    ) -> Local:
        """Slide `w` over `x`; `windows` are strides, dilations of `x` and dilations of `w`."""
        return self._operation("convolution", result, [x, w], windows or (), name)

    def unary(self, function: str, x: Value, result: ResultType = None, name: str = "", metadata: str = "") -> Local:
        """An elementwise function: relu, tanh, sigmoid, sin, exp, ...; metadata such as `, !tlx.short !{}`."""
        value = self._operation(function, result, [x], (), name)
        self.block.instructions[self.index - 1].text += metadata
        return value

    def reduce(
        self,
        operation: str,
        x: Value,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        result: ResultType = None,
        name: str = "",
    ) -> Local:
        """Reduce windows that slide over `x` by add, mul, max, min, and, or, xor; strides are 1 by default."""
        strides = strides or (1,) * len(window)
        return self._operation(f"reduce.{operation}", result, [x], (window, strides), name or operation)

    def pad(
        self,
        x: Value,
        low: Sequence[int],
        high: Sequence[int],
        value: Value,
        interior: Sequence[int] | None = None,
        result: ResultType = None,
        name: str = "",
    ) -> Local:
        """Insert elements of `value` before, after and between those of `x`; negative numbers crop."""
        dims = [low, high] if interior is None else [low, high, interior]
        vectors = [const_ints(I32, d) for d in dims]
        args = [x, *vectors[:2], value, *vectors[2:]]
        return self._call_of("pad", self._result("pad", result, [x], dims), args, name)

    def concat(self, tokens: Sequence[Value], axis: int, result: ResultType = None, name: str = "") -> Local:
        """Concatenate tensors along a logical dimension."""
        args = [*tokens, ConstInt(I32, axis)]
        return self._call_of("concat", self._result("concat", result, tokens, [[axis]]), args, name)

    def fill(self, like: Value, scalar: Value, result: ResultType = None, name: str = "") -> Local:
        """A tensor of the type of `like` with all elements equal to a scalar."""
        return self._call_of("broadcast", self._result("broadcast", result, [like], ()), [like, scalar], name or "fill")

    def transpose(self, x: Value, layout: Sequence[int], result: ResultType = None, name: str = "") -> Local:
        """The same logical tensor, stored in another layout."""
        return self._operation("transpose", result, [x], (layout,), name)

    def broadcast(
        self, x: Value, shape: Sequence[int], dims: Sequence[int], result: ResultType = None, name: str = ""
    ) -> Local:
        """Logical dimension `i` of `x` becomes dimension `dims[i]` of the result; extents 1 stretch."""
        return self._operation("broadcast", result, [x], (shape, dims), name)

    def reshape_block(
        self, x: Value, dims: Sequence[int], sizes: Sequence[int], result: ResultType = None, name: str = ""
    ) -> Local:
        """Split an innermost block of each size off each listed dimension."""
        return self._operation("reshape.block", result, [x], (dims, sizes), name)

    def reshape_permute(
        self, x: Value, perm: Sequence[int], shape: Sequence[int], result: ResultType = None, name: str = ""
    ) -> Local:
        """Permute logical dimensions, then reshape row-major."""
        return self._operation("reshape.permute", result, [x], (perm, shape), name)

    def repeat(self, call: Instruction, operation: str, args: Sequence[Value], result: TensorType) -> Local:
        """The operation of a call, with its flags and metadata, on operands of other extents."""
        debug, self.debug = self.debug, ""
        repeated = self._tensor_call(operation, result.vector, args, call.result or operation, result)
        self.debug = debug
        if call.flags:
            repeated.text = repeated.text.replace("= call ", f"= {_call_words(call)} ", 1)
        repeated.text, repeated.trailer, repeated.flags = repeated.text + call.trailer, call.trailer, call.flags
        return repeated.value

    # Types -----------------------------------------------------------------------------------------------------

    def _type_of(self, value: Value) -> TensorType:
        type_ = self.tensor_types.get(str(value))
        if type_ is None:
            message = f"the tensor type of {value} is not known to this builder: pass it"
            raise ValueError(message)
        return type_

    def _result(
        self, operation: str, result: ResultType, tokens: Sequence[Value], dims: Dims
    ) -> TensorType | VectorType:
        """The result type that is passed, or the preferred one of the typing rule."""
        if isinstance(result, (TensorType, VectorType)):
            return result
        types = [self._type_of(token) for token in tokens]
        return _row(operation).infer(types, [tuple(d) for d in dims], result or types[0].element)[0]

    # The call --------------------------------------------------------------------------------------------------

    def _operation(self, operation: str, result: ResultType, tokens: Sequence[Value], dims: Dims, name: str) -> Local:
        """A call whose operands are tokens, then constant vectors."""
        args = [*tokens, *(const_ints(I32, d) for d in dims)]
        return self._call_of(operation, self._result(operation, result, tokens, dims), args, name)

    def _call_of(self, operation: str, result: TensorType | VectorType, args: Sequence[Value], name: str) -> Local:
        if isinstance(result, TensorType):
            return self._tensor_call(operation, result.vector, args, name or operation, result).value
        return self._tensor_call(operation, result, args, name or operation).value

    def _tensor_call(
        self,
        operation: str,
        result: Type,
        args: Sequence[Value],
        name: str,
        tensor: TensorType | None = None,
        element: Type | None = None,
    ) -> Instruction:
        """A call to a tensor intrinsic.

        Args:
            operation: The intrinsic's name, without `llvm.tensor.`.
            result: Type of the result.
            args: The arguments.
            name: Stem of the result's name.
            tensor: The tensor type of the result, if it is known.
            element: Element type of the first argument, a pointer.
        """
        type_ = function_of(result, tuple([a.type for a in args]))
        row = _row(operation)
        callee = declare_function(self.module, canonical_name(row, result, type_.params), type_, row.attributes())
        first = args[0].type
        is_untyped = isinstance(first, PointerType) and first.pointee in (None, I8)
        attribute = f"elementtype({element})" if element is not None and is_untyped else ""
        words = [str(args[0].type), attribute, str(args[0])]
        spelled = ", ".join([" ".join(w for w in words if w), *(a.typed for a in args[1:])])
        body = f"call {result} {callee}({spelled}){self.debug}"
        call = self.emit("call", result, [callee, *args], body, name, source_type=type_)
        call.arg_attributes = (attribute, *("" for _ in args[1:]))
        call.trailer = self.debug
        if tensor is not None:
            self.tensor_types[str(call.value)] = tensor
        return call


@lru_cache(maxsize=4096)
def _row(operation: str) -> Intrinsic:
    row = lookup(f"llvm.tensor.{operation}")
    if row is None:
        message = f"no intrinsic llvm.tensor.{operation}"
        raise ValueError(message)
    return row


def _call_words(call: Instruction) -> str:
    """`tail call nnan`: the words of a call in front of its result's type."""
    before = [word for word in call.flags if word in TAIL_MARKERS]
    return " ".join([*before, "call", *(word for word in call.flags if word not in before)])


def _vectors(type_: TensorType) -> tuple[Aggregate, Aggregate, Aggregate]:
    """The operands shape, layout, padding."""
    return const_ints(I32, type_.shape), const_ints(I32, type_.layout), const_ints(I32, type_.padding)


def _pitches(type_: TensorType, pitches: Sequence[int] | None) -> Aggregate:
    """The operand strides; the outermost entry, which is ignored, is written as 0."""
    return const_ints(I32, [0] * type_.rank if pitches is None else [0, *pitches[1:]])
