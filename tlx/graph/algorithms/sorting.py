"""Sorting: a stable radix sort of 32-bit keys, each with its element's position; insertion sort if there are few.

The sort is a function in plain LLVM IR that is added to the module. A key becomes one or two numbers of 32 bits, whose
unsigned order is the order of the keys. The sort runs once for each of them, the last one first, and carries the
positions along:

    keys     2.5, -1.0, 2.5
    numbers  0xc0200000, 0x407fffff, 0xc0200000
    sorted   (0x407fffff, 1), (0xc0200000, 0), (0xc0200000, 2)
             positions 1, 0, 2, by which all operands are permuted

An entry is one i64 with the position below. Only the numbers are compared, so that equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tlx.graph.control_flow import ControlFlowMethods
from tlx.graph.core import BOOL, listed
from tlx.graph.indexing import stored_type
from tlx.graph.value import Operand, Value
from tlx.intrinsics.numpy_types import is_float, type_of
from tlx.ir import values as ir
from tlx.ir.module import UnparsedText
from tlx.ir.rewrite import declare_intrinsic
from tlx.ir.types import I1, I8, I32, I64, PTR, VOID, FunctionType, bits_of
from tlx.ir.values import ConstInt

_UINT32: Final = np.dtype(np.uint32)
_UINT64: Final = np.dtype(np.uint64)
_LONGEST: Final = 1 << 31
_SHORT: Final = 48
"""At most as many entries are sorted by insertion."""


class Sorting(ControlFlowMethods):
    """Sorting, and the greatest elements.

    Floats are in total order, as in XLA: -NaN, -inf, ..., -0, +0, ..., inf, NaN.
    """

    def sort(self, *operands: Operand, axis: int = -1, keys: int = 1, descending: bool = False) -> tuple[Value, ...]:
        """Sort tensors along a dimension by the first of them; equal elements keep their order.

        Args:
            *operands: Tensors of one shape; all are permuted in the same way.
            axis: The dimension.
            keys: How many operands are compared, the first one first.
            descending: Whether the greatest elements come first.
        """
        values = [self._value("sort", x) for x in operands]
        if not 1 <= keys <= len(values):
            self._fail("sort", f"keys is {keys}: expected 1 to {len(values)}, the number of operands")
        first = values[0]
        for value in values[1:]:
            if value.shape != first.shape:
                self._fail("sort", f"shapes {listed(first.shape)} and {listed(value.shape)} differ")
        along = self._axis("sort", axis, first.rank)
        if not first.view.count:
            return tuple(values)
        order = self._sorted_entries("sort", values[:keys], along, descending=descending)
        return tuple(self._permuted(value, along, order) for value in values)

    def argsort(self, x: Operand, axis: int = -1, *, descending: bool = False) -> Value:
        """Positions (int32) of the elements in sorted order; equal elements keep their order."""
        value = self._value("argsort", x)
        along = self._axis("argsort", axis, value.rank)
        if not value.view.count:
            return self._empty(value.shape, np.dtype(np.int32))
        order = self._sorted_entries("argsort", [value], along, descending=descending)
        return self._last_to(self.convert(order, "int32"), along)

    def top_k(self, x: Operand, k: int) -> tuple[Value, Value]:
        """The `k` greatest elements along the last dimension in descending order, and their positions (int32).

        Of equal elements the first ones are taken.
        """
        value = self._value("top_k", x)
        last = self._axis("top_k", -1, value.rank)
        if not 0 <= k <= value.shape[last]:
            self._fail("top_k", f"k is {k}: expected 0 to {value.shape[last]}, the extent of the last dimension")
        if 0 in (k, *value.shape):
            shape = (*value.shape[:-1], k)
            return self._empty(shape, value.dtype), self._empty(shape, np.dtype(np.int32))
        order = self._sorted_entries("top_k", [value], last, descending=True)
        return self._permuted(value, last, order, k), self.index(self.convert(order, "int32"), (..., slice(k)))

    def _sorted_entries(self, operation: str, keys: list[Value], axis: int, *, descending: bool) -> Value:
        """The entries in sorted order; the dimension is the last one."""
        shape = self._to_last(keys[0], axis).shape
        length, rows = shape[-1], keys[0].view.count // shape[-1]
        if length >= _LONGEST:
            self._fail(operation, f"dimension {axis} has {length} elements, more than {_LONGEST - 1}")
        numbers = [n for key in keys for n in self._numbers(self._to_last(key, axis), descending=descending)]
        stored = [self._materialized(self._dense(n)) for n in numbers]
        entries, scratch = self._buffer((rows, length), _UINT64), self._buffer((length,), _UINT64)
        count = ConstInt(I64, length)
        with self._loop(rows) as row:
            at = self._builder.gep(I64, entries.buffer.operand, self._builder.mul(row, length))
            self._call("tlx.sort.positions", [at, count])
            for number in reversed(stored):
                start = self._builder.add(self._builder.mul(row, length), number.view.offset)
                source = self._builder.gep(I32, number.buffer.operand, start)
                self._call("tlx.sort", [at, scratch.buffer.operand, source, count])
        return self.reshape(entries, shape)

    def _permuted(self, x: Value, axis: int, entries: Value, count: int | None = None) -> Value:
        """The first elements of a tensor in the order of entries."""
        source = self._materialized(self._dense(self._to_last(x, axis)))
        length = source.shape[-1]
        taken = length if count is None else count
        rows = source.view.count // length
        result = self._buffer((*source.shape[:-1], taken), x.dtype)
        b, type_ = self._builder, stored_type(x.dtype)
        with self._loop(rows) as row:
            to = b.gep(type_, result.buffer.operand, b.mul(row, taken))
            start = b.gep(type_, source.buffer.operand, b.add(b.mul(row, length), source.view.offset))
            order = b.gep(I64, entries.buffer.operand, b.mul(row, length))
            self._call(f"tlx.take.i{bits_of(type_)}", [to, start, order, ConstInt(I64, taken)])
        return self._last_to(result, axis)

    def _numbers(self, x: Value, *, descending: bool) -> list[Value]:
        """Numbers of 32 bits that compare as the elements do, the more significant one first."""
        ordered = self._ordered(x)
        if descending:
            ordered = self.unary("invert", ordered)
        if ordered.dtype == _UINT32:
            return [ordered]
        return [self.convert(self.binary("shift_right", ordered, 32), _UINT32), self.convert(ordered, _UINT32)]

    def _ordered(self, x: Value) -> Value:
        """Unsigned integers of 32 or 64 bits that compare as the elements do."""
        width = bits_of(type_of(x.dtype))
        to = _UINT64 if width == 64 else _UINT32
        if x.dtype == BOOL or x.dtype.kind == "u":
            return self.convert(x, to)
        signed = np.dtype(f"i{to.itemsize}")
        sign = self.full((), 1 << (8 * to.itemsize - 1), to)
        if not is_float(x.dtype):
            return self.binary("xor", self.convert(self.convert(x, signed), to), sign)
        bits = self.convert(self.bitcast(x, f"int{width}"), signed)
        ones = self.convert(self.binary("shift_right", bits, 8 * to.itemsize - 1), to)  # where the sign is set
        return self.binary("xor", self.convert(bits, to), self.binary("or", ones, sign))

    def _to_last(self, x: Value, axis: int) -> Value:
        """The tensor with a dimension moved to the end; a scalar has none."""
        return self.transpose(x, [*(d for d in range(x.rank) if d != axis), axis])

    def _last_to(self, x: Value, axis: int) -> Value:
        """The tensor with the last dimension moved to a place."""
        order = [*range(x.rank - 1)]
        order.insert(axis, x.rank - 1)
        return self.transpose(x, order)

    def _call(self, name: str, arguments: Sequence[ir.Value]) -> None:
        """A call to a function of the table, which is added to the module."""
        if name not in self._functions:
            self._functions.add(name)
            if name == "tlx.sort":
                copied = FunctionType(VOID, (PTR, PTR, I64, I1))
                declare_intrinsic(self._module, "llvm.memcpy", [PTR, PTR, I64], copied)
                declare_intrinsic(self._module, "llvm.memset", [PTR, I64], FunctionType(VOID, (PTR, I8, I64, I1)))
            stem, _, type_ = name.rpartition(".")
            text = _TAKE.replace("iN", type_) if stem == "tlx.take" else _FUNCTIONS[name]
            self._module.items.append(UnparsedText(f"\n\n{text.strip()}"))
        type_ = FunctionType(VOID, tuple(a.type for a in arguments))
        self._builder.call(ir.Global(PTR, name), type_, arguments)


_POSITIONS: Final = """
define internal void @tlx.sort.positions(ptr %entries, i64 %n) nounwind {
entry:
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %to = getelementptr inbounds i64, ptr %entries, i64 %i
  store i64 %i, ptr %to, align 8
  %following = add i64 %i, 1
  %more = icmp ult i64 %following, %n
  br i1 %more, label %next, label %done

done:
  ret void
}
"""

_TAKE: Final = """
define internal void @tlx.take.iN(ptr noalias %result, ptr noalias %x, ptr noalias %entries, i64 %n) nounwind {
entry:
  br label %next

next:
  %i = phi i64 [ 0, %entry ], [ %following, %next ]
  %entry.at = getelementptr inbounds i64, ptr %entries, i64 %i
  %taken = load i64, ptr %entry.at, align 8
  %position = and i64 %taken, 4294967295
  %from = getelementptr inbounds iN, ptr %x, i64 %position
  %element = load iN, ptr %from
  %to = getelementptr inbounds iN, ptr %result, i64 %i
  store iN %element, ptr %to
  %following = add i64 %i, 1
  %more = icmp ult i64 %following, %n
  br i1 %more, label %next, label %done

done:
  ret void
}
"""

_SORT: Final = """
define internal void @tlx.sort(ptr noalias %entries, ptr noalias %scratch, ptr noalias %numbers, i64 %n) nounwind {
entry:
  %counts = alloca [256 x i64], align 64
  br label %number

number:
  %i = phi i64 [ 0, %entry ], [ %i.next, %number ]
  %entry.at = getelementptr inbounds i64, ptr %entries, i64 %i
  %old = load i64, ptr %entry.at, align 8
  %position = and i64 %old, 4294967295
  %number.at = getelementptr inbounds i32, ptr %numbers, i64 %position
  %bits = load i32, ptr %number.at, align 4
  %wide = zext i32 %bits to i64
  %high = shl i64 %wide, 32
  %new = or i64 %high, %position
  store i64 %new, ptr %entry.at, align 8
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %n
  br i1 %more, label %number, label %choose

choose:
  %is.short = icmp ule i64 %n, SHORT
  br i1 %is.short, label %insert, label %digit

insert:
  %k = phi i64 [ 1, %choose ], [ %k.next, %placed ]
  %is.inside = icmp ult i64 %k, %n
  br i1 %is.inside, label %take, label %done

take:
  %x.at = getelementptr inbounds i64, ptr %entries, i64 %k
  %x = load i64, ptr %x.at, align 8
  %x.number = lshr i64 %x, 32
  br label %shift

shift:
  %p = phi i64 [ %k, %take ], [ %q, %move ]
  %p.at = getelementptr inbounds i64, ptr %entries, i64 %p
  %is.first = icmp eq i64 %p, 0
  br i1 %is.first, label %placed, label %compare

compare:
  %q = add i64 %p, -1
  %y.at = getelementptr inbounds i64, ptr %entries, i64 %q
  %y = load i64, ptr %y.at, align 8
  %y.number = lshr i64 %y, 32
  %is.greater = icmp ugt i64 %y.number, %x.number
  br i1 %is.greater, label %move, label %placed

move:
  store i64 %y, ptr %p.at, align 8
  br label %shift

placed:
  store i64 %x, ptr %p.at, align 8
  %k.next = add i64 %k, 1
  br label %insert

digit:
  %bit = phi i64 [ 32, %choose ], [ %bit.next, %sorted ]
  %from = phi ptr [ %entries, %choose ], [ %from.next, %sorted ]
  %to = phi ptr [ %scratch, %choose ], [ %to.next, %sorted ]
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 2048, i1 false)
  br label %count

count:
  %c = phi i64 [ 0, %digit ], [ %c.next, %count ]
  %c.at = getelementptr inbounds i64, ptr %from, i64 %c
  %c.entry = load i64, ptr %c.at, align 8
  %c.shifted = lshr i64 %c.entry, %bit
  %c.digit = and i64 %c.shifted, 255
  %counter = getelementptr inbounds i64, ptr %counts, i64 %c.digit
  %counted = load i64, ptr %counter, align 8
  %incremented = add i64 %counted, 1
  store i64 %incremented, ptr %counter, align 8
  %c.next = add i64 %c, 1
  %is.counting = icmp ult i64 %c.next, %n
  br i1 %is.counting, label %count, label %counted.all

counted.all:
  %is.constant = icmp eq i64 %incremented, %n
  br i1 %is.constant, label %sorted, label %sum

sum:
  %d = phi i64 [ 0, %counted.all ], [ %d.next, %sum ]
  %start = phi i64 [ 0, %counted.all ], [ %start.next, %sum ]
  %d.at = getelementptr inbounds i64, ptr %counts, i64 %d
  %d.count = load i64, ptr %d.at, align 8
  store i64 %start, ptr %d.at, align 8
  %start.next = add i64 %start, %d.count
  %d.next = add i64 %d, 1
  %is.summing = icmp ult i64 %d.next, 256
  br i1 %is.summing, label %sum, label %distribute

distribute:
  %m = phi i64 [ 0, %sum ], [ %m.next, %distribute ]
  %m.at = getelementptr inbounds i64, ptr %from, i64 %m
  %m.entry = load i64, ptr %m.at, align 8
  %m.shifted = lshr i64 %m.entry, %bit
  %m.digit = and i64 %m.shifted, 255
  %start.at = getelementptr inbounds i64, ptr %counts, i64 %m.digit
  %place = load i64, ptr %start.at, align 8
  %place.next = add i64 %place, 1
  store i64 %place.next, ptr %start.at, align 8
  %place.at = getelementptr inbounds i64, ptr %to, i64 %place
  store i64 %m.entry, ptr %place.at, align 8
  %m.next = add i64 %m, 1
  %is.placing = icmp ult i64 %m.next, %n
  br i1 %is.placing, label %distribute, label %sorted

sorted:
  %from.next = phi ptr [ %from, %counted.all ], [ %to, %distribute ]
  %to.next = phi ptr [ %to, %counted.all ], [ %from, %distribute ]
  %bit.next = add i64 %bit, 8
  %has.digit = icmp ult i64 %bit.next, 64
  br i1 %has.digit, label %digit, label %finish

finish:
  %is.scratch = icmp eq ptr %from.next, %scratch
  br i1 %is.scratch, label %copy, label %done

copy:
  %all = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %entries, ptr %scratch, i64 %all, i1 false)
  br label %done

done:
  ret void
}
"""

_FUNCTIONS: Final = {"tlx.sort": _SORT.replace("SHORT", str(_SHORT)), "tlx.sort.positions": _POSITIONS}
