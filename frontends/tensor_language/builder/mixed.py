"""Methods that write what may stand in both kinds of regions: builtins, memory, views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.analysis import expanded_type, fused_type, sliced_type
from tlx.frontends.tensor_language.builder.core import Core, document, method
from tlx.frontends.tensor_language.builder.values import Operand, Value
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.control import Barrier
from tlx.frontends.tensor_language.operations.core import Scope, Semantics
from tlx.frontends.tensor_language.operations.memory import (
    Associated,
    AtomicLoad,
    AtomicStore,
    Expand,
    Fuse,
    Load,
    Size,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.operations.subgroups import Builtin, Component, type_of_builtin
from tlx.frontends.tensor_language.syntax.nodes import Name, Slice
from tlx.frontends.tensor_language.types import BOOL, INDEX, Extent, GroupType, MemrefType, Type

Index = int | Value
SubviewPart = Index | tuple[Index, Index] | slice
"""A mode of a subview: an index, (offset, size), or `slice(None)` for all of the mode."""


_BUILTINS: Final = {
    "group_id": "the number of the work-group along a dimension; of type index.",
    "num_groups": "how many work-groups run the kernel along a dimension; of type index.",
    "num_subgroups": "how many subgroups a work-group has along a dimension; of type i32.",
    "subgroup_id": "the number of the subgroup in its work-group along a dimension; of type i32.",
}


def _dimensional(name: str) -> str:
    is_spmd = OPERATIONS[name].region == "spmd"
    refused = "It stands in a collective region." if is_spmd else "There is no such dimension."
    return document(_BUILTINS[name], {"component": "The dimension."}, refused)


_UPDATED: Final = {
    "value": "A number of the element type, a value or a Python number.",
    "target": "A memref.",
    "indices": "An index each mode: values of type index, or Python integers.",
    "scope": "Who else may see the access; all are one here, as there is one memory.",
    "semantics": "What other accesses it orders.",
}
_JOINED: Final = {"atomic_add": "sum", "atomic_max": "larger", "atomic_min": "smaller"}


def _updated(name: str) -> str:
    text = f"an entry of a memref becomes the {_JOINED[name]} of it and the value, atomically; gives what it was."
    order = "" if name == "atomic_add" else "; complex numbers have no order"
    refused = f"The value is not of the element type, or there is not one index each mode{order}."
    return document(text, _UPDATED, refused)


class Mixed(Core):
    """Mixed instructions. Numbers given as indices become constants of type `index`."""

    def _of_a_dimension(self, name: str, component: Component) -> Value:
        return self._write_builtin(name, component)

    def _write_builtin(self, name: str, component: Component | None = None) -> Value:
        builtin = Builtin(**OPERATIONS[name].spellings[name], component=component)
        return self._write_one(builtin, type_of_builtin(builtin.name))

    group_id = method(_of_a_dimension, "group_id", _dimensional)
    num_groups = method(_of_a_dimension, "num_groups", _dimensional)
    num_subgroups = method(_of_a_dimension, "num_subgroups", _dimensional)
    subgroup_id = method(_of_a_dimension, "subgroup_id", _dimensional)

    def subgroup_size(self) -> Value:
        """`subgroup_size`: how many work-items a subgroup has; of type i32."""
        return self._write_builtin("subgroup_size")

    def subgroup_linear_id(self) -> Value:
        """`subgroup_linear_id`: the number of the subgroup in its work-group, in one dimension; of type i32.

        Raises:
            TlxError: It stands in a collective region.
        """
        return self._write_builtin("subgroup_linear_id")

    def subgroup_local_id(self) -> Value:
        """`subgroup_local_id`: the number of the work-item in its subgroup; of type i32.

        Raises:
            TlxError: It stands in a collective region.
        """
        return self._write_builtin("subgroup_local_id")

    def _update(
        self,
        name: str,
        value: Operand,
        target: Value,
        *indices: Operand,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        element = self._memref(target, "the target").element
        stored, places = self._operand(value, element), self._operands(indices, INDEX)
        return self._write_named(
            name, element, scope=scope, semantics=semantics, value=stored, target=self._name(target), indices=places
        )

    atomic_add = method(_update, "atomic_add", _updated)
    atomic_max = method(_update, "atomic_max", _updated)
    atomic_min = method(_update, "atomic_min", _updated)

    def associated(self, operand: Value) -> Value:
        """`associated`: whether the address of a memref or group is not null; gives a `bool`.

        Args:
            operand: A memref or a group.

        Raises:
            TlxError: The operand is neither.
        """
        return self._write_one(Associated(operand=self._name(operand)), BOOL)

    def barrier(self, *, fence_global: bool = False, fence_local: bool = False) -> None:
        """`barrier`: all work-items of the work-group get here before any goes on.

        Args:
            fence_global: Whether what was written to global memory before is seen behind it.
            fence_local: The same of local memory.

        Raises:
            TlxError: Not all work-items meet it: it stands in `foreach`, or where a value decides that differs
                between them.
        """
        self._write(Barrier(fence_global=fence_global, fence_local=fence_local))

    def load(self, source: Value, *indices: Operand) -> Value:
        """`load`: an entry of a memref, or a member of a group, which is a memref.

        Args:
            source: A memref or a group.
            indices: An index each mode, one for a group: values of type index, or Python integers.

        Raises:
            TlxError: There are more or fewer indices.
        """
        type_ = self._loaded(source)
        return self._write_one(Load(source=self._name(source), indices=self._operands(indices, INDEX)), type_)

    def atomic_load(
        self, source: Value, *indices: Operand, scope: Scope = "work_group", semantics: Semantics = "relaxed"
    ) -> Value:
        """`atomic_load`: an entry of a memref, read atomically.

        Args:
            source: A memref.
            indices: An index each mode: values of type index, or Python integers.
            scope: Who else may see the access; all are one here, as there is one memory.
            semantics: What other accesses it orders: neither release nor acquire_release.

        Raises:
            TlxError: There are more or fewer indices, or the order is not one of a load.
        """
        type_ = self._loaded(source)
        names = self._operands(indices, INDEX)
        load = AtomicLoad(scope=scope, semantics=semantics, source=self._name(source), indices=names)
        return self._write_one(load, type_)

    def store(self, value: Operand, target: Value, *indices: Operand) -> None:
        """`store`: changes an entry of a memref.

        Args:
            value: A number of the element type, a value or a Python number.
            target: A memref.
            indices: An index each mode: values of type index, or Python integers.

        Raises:
            TlxError: The value is not of the element type, or there is not one index each mode.
        """
        name = self._operand(value, self._memref(target, "the target").element)
        self._write(Store(value=name, target=self._name(target), indices=self._operands(indices, INDEX)))

    def atomic_store(
        self,
        value: Operand,
        target: Value,
        *indices: Operand,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> None:
        """`atomic_store`: changes an entry of a memref, atomically.

        Args:
            value: A number of the element type, a value or a Python number.
            target: A memref.
            indices: An index each mode: values of type index, or Python integers.
            scope: Who else may see the access; all are one here, as there is one memory.
            semantics: What other accesses it orders: neither acquire nor acquire_release.

        Raises:
            TlxError: The value is not of the element type, or there is not one index each mode, or the order is not
                one of a store.
        """
        name = self._operand(value, self._memref(target, "the target").element)
        places = self._operands(indices, INDEX)
        target_ = self._name(target)
        self._write(AtomicStore(scope=scope, semantics=semantics, value=name, target=target_, indices=places))

    def size(self, operand: Value, mode: int = 0) -> Value:
        """`size`: the extent of a mode of a memref, or the number of members of a group; of type index.

        Args:
            operand: A memref or a group.
            mode: The mode, counted from 0; 0 for a group.

        Raises:
            TlxError: There is no such mode.
        """
        return self._write_one(Size(operand=self._name(operand), mode=mode), INDEX)

    def expand(self, operand: Value, mode: int, shape: Sequence[Index]) -> Value:
        """`expand`: a view of a memref with one mode seen as several.

        Args:
            operand: A memref.
            mode: The mode, counted from 0.
            shape: The extents of two modes or more in place of it, whose product is its own: integers, or values of
                type index.

        Raises:
            TlxError: There is no such mode, or the product is another.
        """
        type_ = self._with_mode(operand, mode)
        parts = tuple(self._extent(extent) for extent in shape)
        expand = Expand(operand=self._name(operand), mode=mode, shape=parts)
        return self._write_one(expand, expanded_type(type_, mode, parts))

    def fuse(self, operand: Value, first: int, last: int) -> Value:
        """`fuse`: a view of a memref with several modes seen as one.

        Args:
            operand: A memref.
            first: The first of the modes, counted from 0.
            last: The last of them; each must lie packed behind the one before.

        Raises:
            TlxError: There are no such modes, or they do not lie packed.
        """
        type_ = self._with_mode(operand, last)
        if not 0 <= first < last:
            raise UsageError(f"expected modes first < last, got {first} and {last}", self.here())
        return self._write_one(
            Fuse(operand=self._name(operand), first=first, last=last), fused_type(type_, first, last)
        )

    def subview(self, operand: Value, *parts: SubviewPart) -> Value:
        """`subview`: a view of a part of a memref.

        Args:
            operand: A memref.
            parts: For each mode an index, which removes the mode; (offset, size), integers or values of type index; or
                `slice(None)` for all of it.

        Raises:
            TlxError: There is not one part each mode, or an offset or a size is negative.
        """
        type_ = self._memref(operand, "the operand")
        if len(parts) != type_.order:
            message = f"subview of {operand!r}: expected a slice each mode, {type_.order}, got {len(parts)}"
            raise UsageError(message, self.here())
        slices = tuple(self._slice(operand, type_.shape[mode], mode, part) for mode, part in enumerate(parts))
        return self._write_one(Subview(operand=self._name(operand), slices=slices), sliced_type(type_, slices))

    def _loaded(self, source: Value) -> Type:
        type_ = self._checked(source).type
        if isinstance(type_, GroupType):
            return type_.memref
        return self._memref(source, "what is loaded from").element

    def _with_mode(self, operand: Value, mode: int) -> MemrefType:
        type_ = self._memref(operand, "the operand")
        if not 0 <= mode < type_.order:
            raise UsageError(f"{operand!r} has {type_.order} modes, counted from 0; got mode {mode}", self.here())
        return type_

    def _extent(self, extent: Index) -> int | Name:
        return extent if isinstance(extent, int) else self._name(extent)

    def _slice(self, operand: Value, extent: Extent, mode: int, part: SubviewPart) -> Slice:
        if isinstance(part, slice):
            if part != slice(None):
                message = "write (offset, size) for a part of a mode; only slice(None) has a meaning"
                raise UsageError(message, self.here())
            return Slice(0, self.size(operand, mode).name if extent is None else extent)
        if isinstance(part, tuple):
            offset, size = part
            return Slice(self._extent(offset), self._extent(size))
        return Slice(self._extent(part))
