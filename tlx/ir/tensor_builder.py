"""Building tensor operations: `t = b.tensor_load(p, type_)`, `m = b.matmul(t, u, type_)`, `b.tensor_store(q, t)`.

Calls carry canonical, mangled names and are declared. A pointer's element type is its type where pointers are typed,
else (and for `i8*`, which may be anything) an `elementtype(T)` attribute, so that no reader has to guess it from the
users of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.builder import Builder
from tlx.ir.mangle import mangled
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import declare
from tlx.ir.types import I8, I32, TOKEN, VOID, FunctionType, PointerType, Type, VectorType
from tlx.ir.values import Aggregate, Local, Value, const_ints
from tlx.types import TensorType

_PURE = "nounwind readnone speculatable willreturn"
_TYPEINFO = "nounwind readnone"
_READS = "argmemonly nounwind readonly"
_WRITES = "argmemonly nounwind willreturn writeonly"


class TensorBuilder(Builder):
    """A `Builder` that also emits `llvm.tensor.*` calls.

    Results are `Local` values: tokens of `typeinfo` and `tensor_load`, flattened vectors of the operations. The tensor
    type of what comes out is what the caller asked for.

    Attributes:
        token_types: Types of the tokens this builder made, by `%name`.
    """

    def __init__(
        self, module: Module, function: Function, block: Block | None = None, index: int | None = None
    ) -> None:
        super().__init__(module, function, block, index)
        self.token_types: dict[str, TensorType] = {}

    # Tokens ----------------------------------------------------------------------------------------------------

    def typeinfo(self, value: Value, type_: TensorType, name: str = "") -> Local:
        """A token for a flattened vector: `token @llvm.tensor.typeinfo(<E x T> value, shape, layout, padding)`."""
        vectors = _vectors(type_)
        overloads = [value.type, vectors[0].type]
        call = self._tensor_call("typeinfo", overloads, TOKEN, [value, *vectors], _TYPEINFO, name or "tensor")
        return self._token(call, type_)

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
        call = self._tensor_call("load", overloads, TOKEN, args, _READS, name or "tensor", type_.element)
        return self._token(call, type_)

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
        type_ = type_ or self.token_types[str(token)]
        pointer = self.retype(pointer, type_.element)
        strides = _pitches(type_, pitches)
        return self._tensor_call("store", [pointer.type, strides.type], VOID, [pointer, token, strides], _WRITES, "")

    def tovector(self, token: Value, type_: TensorType, name: str = "") -> Local:
        """The flattened vector of a token."""
        return self._operation("tovector", type_, [token], name)

    # Operations ------------------------------------------------------------------------------------------------

    def matmul(self, x: Value, y: Value, result: TensorType | VectorType, name: str = "") -> Local:
        """`L(x) @ L(y)`, row-major."""
        return self._operation("matmul", result, [x, y], name or "matmul")

    def mma(self, kind: str, acc: Value, a: Value, b: Value, result: TensorType | VectorType, name: str = "") -> Local:
        """`L(acc) + L(a) @ L(b)`; `kind` is umma, smma, usmma or summa."""
        return self._operation(kind, result, [acc, a, b], name or kind)

    def transpose(self, x: Value, layout: Sequence[int], result: TensorType | VectorType, name: str = "") -> Local:
        """The same logical tensor, stored in the order of `layout`."""
        return self._operation("transpose", result, [x, const_ints(I32, layout)], name or "transpose")

    def elementwise(self, operation: str, x: Value, result: TensorType | VectorType, name: str = "") -> Local:
        """`relu`, `tanh`, `exp`, ... of each element."""
        return self._operation(operation, result, [x], name or operation)

    def broadcast(self, like: Value, scalar: Value, result: TensorType | VectorType, name: str = "") -> Local:
        """A tensor of `like`'s type, every data element `scalar`."""
        vector = _vector(result)
        call = self._tensor_call("broadcast", [vector, scalar.type], vector, [like, scalar], _PURE, name or "broadcast")
        return call.value

    def broadcast_dims(
        self,
        x: Value,
        shape: Sequence[int],
        dims: Sequence[int],
        result: TensorType | VectorType,
        name: str = "",
    ) -> Local:
        """Logical dimension `i` of `x` becomes dimension `dims[i]` of the result; extents 1 stretch."""
        args = [x, const_ints(I32, shape), const_ints(I32, dims)]
        return self._operation("broadcast", result, args, name or "broadcast")

    def reshape_block(
        self,
        x: Value,
        dims: Sequence[int],
        sizes: Sequence[int],
        result: TensorType | VectorType,
        name: str = "",
    ) -> Local:
        """Split an innermost block of each size off each listed dimension."""
        args = [x, const_ints(I32, dims), const_ints(I32, sizes)]
        return self._operation("reshape.block", result, args, name or "block")

    def reshape_permute(
        self,
        x: Value,
        perm: Sequence[int],
        shape: Sequence[int],
        result: TensorType | VectorType,
        name: str = "",
    ) -> Local:
        """Permute logical dimensions, then reshape row-major."""
        args = [x, const_ints(I32, perm), const_ints(I32, shape)]
        return self._operation("reshape.permute", result, args, name or "permute")

    def _token(self, call: Instruction, type_: TensorType) -> Local:
        self.token_types[str(call.value)] = type_
        return call.value

    # The call --------------------------------------------------------------------------------------------------

    def _operation(self, operation: str, result: TensorType | VectorType, args: Sequence[Value], name: str) -> Local:
        """A call whose overloads are its result and its vector operands."""
        vector = _vector(result)
        overloads: list[Type] = [vector, *(a.type for a in args if isinstance(a.type, VectorType))]
        return self._tensor_call(operation, overloads, vector, args, _PURE, name).value

    def _tensor_call(
        self,
        operation: str,
        overloads: list[Type],
        result: Type,
        args: Sequence[Value],
        attributes: str,
        name: str,
        element: Type | None = None,
    ) -> Instruction:
        type_ = FunctionType(result, tuple(a.type for a in args))
        callee = declare(self.module, mangled(f"llvm.tensor.{operation}", overloads), type_, attributes)
        first = args[0].type
        marked = element is not None and isinstance(first, PointerType) and first.pointee in (None, I8)
        attribute = f"elementtype({element})" if marked else ""
        words = [str(args[0].type), attribute, str(args[0])]
        spelled = ", ".join([" ".join(w for w in words if w), *(a.typed for a in args[1:])])
        body = f"call {result} {callee}({spelled}){self.debug}"
        call = self.emit("call", result, [callee, *args], body, name, source_type=type_)
        call.arg_attributes = (attribute, *("" for _ in args[1:]))
        return call


def _vector(result: TensorType | VectorType) -> VectorType:
    return result.vector if isinstance(result, TensorType) else result


def _vectors(type_: TensorType) -> tuple[Aggregate, Aggregate, Aggregate]:
    """The operands shape, layout, padding."""
    return const_ints(I32, type_.shape), const_ints(I32, type_.layout), const_ints(I32, type_.padding)


def _pitches(type_: TensorType, pitches: Sequence[int] | None) -> Aggregate:
    """The operand strides; the outermost entry, which means nothing, is written as 0."""
    given = [0] * type_.rank if pitches is None else [0, *pitches[1:]]
    return const_ints(I32, given)
