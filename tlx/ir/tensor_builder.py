"""Building tensor operations: `t = b.tensor_load(p, type_)`, `m = b.matmul(t, u)`, `b.tensor_store(q, t)`.

Calls carry canonical, mangled names and are declared. A pointer's element type is its type where pointers are typed,
else (and for `i8*`, which may be anything) an `elementtype(T)` attribute, so that no reader has to guess it from the
users of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.intrinsics import Intrinsic, lookup
from tlx.ir.builder import Builder
from tlx.ir.mangle import mangled
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import declare
from tlx.ir.types import I8, I32, TOKEN, VOID, FloatType, FunctionType, IntType, PointerType, Type, VectorType
from tlx.ir.values import Aggregate, Local, Value, const_ints
from tlx.types import TensorType

Dims = Sequence[Sequence[int]]
Result = TensorType | VectorType | IntType | FloatType | None


class TensorBuilder(Builder):
    """A `Builder` that also emits `llvm.tensor.*` calls.

    Results are `Local` values: tokens of `typeinfo` and `tensor_load`, flattened vectors of the operations. What an
    operation returns follows from its operands by the table's rule; `result` says which of several results is meant
    (a tensor type or its vector), or only the element type, where that is wider than the operands'.

    Attributes:
        tensor_types: Types of the tokens and results this builder made, by `%name`.
    """

    def __init__(
        self, module: Module, function: Function, block: Block | None = None, index: int | None = None
    ) -> None:
        super().__init__(module, function, block, index)
        self.tensor_types: dict[str, TensorType] = {}

    # Tokens ----------------------------------------------------------------------------------------------------

    def typeinfo(self, value: Value, type_: TensorType | None = None, name: str = "") -> Local:
        """A token for a flattened vector: `token @llvm.tensor.typeinfo(<E x T> value, shape, layout, padding)`.

        The type may be left out for a result that this builder made.
        """
        type_ = type_ or self._type_of(value)
        vectors = _vectors(type_)
        overloads = [value.type, vectors[0].type]
        call = self._tensor_call("typeinfo", overloads, TOKEN, [value, *vectors], name or "tensor")
        return self._typed(call, type_)

    def tensor_load(
        self, pointer: Value, type_: TensorType, pitches: Sequence[int] | None = None, name: str = ""
    ) -> Local:
        """A token for a tensor in memory.

        Args:
            pointer: Its first element.
            type_: Its type.
            pitches: Positions of each dimension in the enclosing array; None and 0 mean dense.
            name: Name of the token.
        """
        pointer = self.retype(pointer, type_.element)
        vectors = [*_vectors(type_), _pitches(type_, pitches)]
        overloads = [pointer.type, vectors[0].type]
        args: list[Value] = [pointer, *vectors]
        call = self._tensor_call("load", overloads, TOKEN, args, name or "tensor", type_.element)
        return self._typed(call, type_)

    def tensor_store(
        self,
        pointer: Value,
        token: Value,
        pitches: Sequence[int] | None = None,
        type_: TensorType | None = None,
    ) -> Instruction:
        """Write a tensor to memory.

        Args:
            pointer: Where its first element goes.
            token: The tensor.
            pitches: Positions of each dimension in the enclosing array; None and 0 mean dense.
            type_: The token's type; may be left out for a token that this builder made.
        """
        type_ = type_ or self._type_of(token)
        pointer = self.retype(pointer, type_.element)
        strides = _pitches(type_, pitches)
        return self._tensor_call("store", [pointer.type, strides.type], VOID, [pointer, token, strides], "")

    def tovector(self, token: Value, type_: TensorType | None = None, name: str = "") -> Local:
        """The flattened vector of a token."""
        return self._operation("tovector", type_ or self._type_of(token), [token], (), name)

    # Operations ------------------------------------------------------------------------------------------------

    def matmul(self, x: Value, y: Value, result: Result = None, name: str = "") -> Local:
        """`L(x) @ L(y)`, row-major."""
        return self._operation("matmul", result, [x, y], (), name)

    def mma(self, kind: str, acc: Value, a: Value, b: Value, result: Result = None, name: str = "") -> Local:
        """`L(acc) + L(a) @ L(b)`; `kind` is umma, smma, usmma or summa."""
        return self._operation(kind, result, [acc, a, b], (), name)

    def transpose(self, x: Value, layout: Sequence[int], result: Result = None, name: str = "") -> Local:
        """The same logical tensor, stored in the order of `layout`."""
        return self._operation("transpose", result, [x], (layout,), name)

    def broadcast(
        self, x: Value, shape: Sequence[int], dims: Sequence[int], result: Result = None, name: str = ""
    ) -> Local:
        """Logical dimension `i` of `x` becomes dimension `dims[i]` of the result; extents 1 stretch."""
        return self._operation("broadcast", result, [x], (shape, dims), name)

    def reshape_block(
        self, x: Value, dims: Sequence[int], sizes: Sequence[int], result: Result = None, name: str = ""
    ) -> Local:
        """Split an innermost block of each size off each listed dimension."""
        return self._operation("reshape.block", result, [x], (dims, sizes), name)

    def reshape_permute(
        self, x: Value, perm: Sequence[int], shape: Sequence[int], result: Result = None, name: str = ""
    ) -> Local:
        """Permute logical dimensions, then reshape row-major."""
        return self._operation("reshape.permute", result, [x], (perm, shape), name)

    # Types -----------------------------------------------------------------------------------------------------

    def _typed(self, call: Instruction, type_: TensorType) -> Local:
        self.tensor_types[str(call.value)] = type_
        return call.value

    def _type_of(self, value: Value) -> TensorType:
        type_ = self.tensor_types.get(str(value))
        if type_ is None:
            msg = f"the tensor type of {value} is not known to this builder: pass it"
            raise ValueError(msg)
        return type_

    def _inferred(self, row: Intrinsic, result: Result, tokens: Sequence[Value], dims: Dims) -> TensorType:
        """The result that the table's rule prefers."""
        types = [self._type_of(token) for token in tokens]
        element = types[0].element if result is None else result
        assert isinstance(element, (IntType, FloatType))
        return row.infer(types, [tuple(d) for d in dims], element)[0]

    # The call --------------------------------------------------------------------------------------------------

    def _operation(self, operation: str, result: Result, tokens: Sequence[Value], dims: Dims, name: str) -> Local:
        """A call whose overloads are its result and its vector operands."""
        if not isinstance(result, (TensorType, VectorType)):
            result = self._inferred(_row(operation), result, tokens, dims)
        vector = result.vector if isinstance(result, TensorType) else result
        vectors = [const_ints(I32, d) for d in dims]
        overloads: list[Type] = [vector, *(v.type for v in vectors)]
        call = self._tensor_call(operation, overloads, vector, [*tokens, *vectors], name or operation)
        return self._typed(call, result) if isinstance(result, TensorType) else call.value

    def _tensor_call(
        self,
        operation: str,
        overloads: list[Type],
        result: Type,
        args: Sequence[Value],
        name: str,
        element: Type | None = None,
    ) -> Instruction:
        type_ = FunctionType(result, tuple(a.type for a in args))
        row = _row(operation)
        callee = declare(self.module, mangled(row.full_name, overloads), type_, row.attributes())
        first = args[0].type
        marked = element is not None and isinstance(first, PointerType) and first.pointee in (None, I8)
        attribute = f"elementtype({element})" if marked else ""
        words = [str(args[0].type), attribute, str(args[0])]
        spelled = ", ".join([" ".join(w for w in words if w), *(a.typed for a in args[1:])])
        body = f"call {result} {callee}({spelled}){self.debug}"
        call = self.emit("call", result, [callee, *args], body, name, source_type=type_)
        call.arg_attributes = (attribute, *("" for _ in args[1:]))
        return call


def _row(operation: str) -> Intrinsic:
    row = lookup(f"llvm.tensor.{operation}")
    if row is None:
        msg = f"no intrinsic llvm.tensor.{operation}"
        raise ValueError(msg)
    return row


def _vectors(type_: TensorType) -> tuple[Aggregate, Aggregate, Aggregate]:
    """The operands shape, layout, padding."""
    return const_ints(I32, type_.shape), const_ints(I32, type_.layout), const_ints(I32, type_.padding)


def _pitches(type_: TensorType, pitches: Sequence[int] | None) -> Aggregate:
    """The operand strides; the outermost entry, which means nothing, is written as 0."""
    given = [0] * type_.rank if pitches is None else [0, *pitches[1:]]
    return const_ints(I32, given)
