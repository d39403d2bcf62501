"""Methods that write what may stand in both kinds of regions: builtins, memory, views."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.ast.base import Name, Slice
from tlx.frontends.tensor_language.ast.mixed import (
    Associated,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Builtin,
    BuiltinName,
    Component,
    Expand,
    Fuse,
    Load,
    Scope,
    Semantics,
    Size,
    Store,
    Subview,
    UpdateOp,
)
from tlx.frontends.tensor_language.builder_core import Core
from tlx.frontends.tensor_language.builder_values import Operand, Value
from tlx.frontends.tensor_language.types import (
    BOOL,
    I32,
    INDEX,
    Extent,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
)
from tlx.frontends.tensor_language.view_types import expanded, fused, sliced

Place = int | Value
Part = Place | tuple[Place, Place] | slice
"""A mode of a subview: an index, (offset, size), or `slice(None)` for all of the mode."""


class Mixed(Core):
    """Mixed instructions. Numbers given as indices become constants of type `index`."""

    def group_id(self, component: Component) -> Value:
        """`group_id` along "x", "y" or "z"."""
        return self._dimensional("group_id", component, INDEX)

    def num_groups(self, component: Component) -> Value:
        """`num_groups` along "x", "y" or "z"."""
        return self._dimensional("num_groups", component, INDEX)

    def num_subgroups(self, component: Component) -> Value:
        """`num_subgroups` along "x", "y" or "z"."""
        return self._dimensional("num_subgroups", component, I32)

    def subgroup_id(self, component: Component) -> Value:
        """`subgroup_id` along "x", "y" or "z"."""
        return self._dimensional("subgroup_id", component, I32)

    def subgroup_size(self) -> Value:
        """`subgroup_size`: work-items of a subgroup."""
        return self._write_one(Builtin(name="subgroup_size"), I32)

    def subgroup_linear_id(self) -> Value:
        """`subgroup_linear_id`: number of the subgroup in its work-group."""
        return self._write_one(Builtin(name="subgroup_linear_id"), I32)

    def subgroup_local_id(self) -> Value:
        """`subgroup_local_id`: number of the work-item in its subgroup."""
        return self._write_one(Builtin(name="subgroup_local_id"), I32)

    def atomic_add(
        self,
        value: Operand,
        target: Value,
        *indices: Operand,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`atomic_add`: an entry of a memref becomes the sum of it and a value; gives what it was."""
        return self._update("add", value, target, indices, scope, semantics)

    def atomic_max(
        self,
        value: Operand,
        target: Value,
        *indices: Operand,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`atomic_max`: an entry of a memref becomes the larger of it and a value; gives what it was."""
        return self._update("max", value, target, indices, scope, semantics)

    def atomic_min(
        self,
        value: Operand,
        target: Value,
        *indices: Operand,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`atomic_min`: an entry of a memref becomes the smaller of it and a value; gives what it was."""
        return self._update("min", value, target, indices, scope, semantics)

    def associated(self, operand: Value) -> Value:
        """`associated`: whether the address of a memref or group is not null."""
        return self._write_one(Associated(operand=self._name(operand)), BOOL)

    def barrier(self, *, fence_global: bool = False, fence_local: bool = False) -> None:
        """`barrier`: all work-items of the group get here before any goes on."""
        self._write(Barrier(fence_global=fence_global, fence_local=fence_local))

    def load(self, source: Value, *indices: Operand) -> Value:
        """`load`: an entry of a memref, or a member of a group."""
        type_ = self._loaded(source)
        return self._write_one(Load(source=self._name(source), indices=self._operands(indices, INDEX)), type_)

    def atomic_load(
        self, source: Value, *indices: Operand, scope: Scope = "work_group", semantics: Semantics = "relaxed"
    ) -> Value:
        """`atomic_load`: an entry of a memref."""
        type_ = self._loaded(source)
        names = self._operands(indices, INDEX)
        load = AtomicLoad(scope=scope, semantics=semantics, source=self._name(source), indices=names)
        return self._write_one(load, type_)

    def store(self, value: Operand, target: Value, *indices: Operand) -> None:
        """`store`: change an entry of a memref."""
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
        """`atomic_store`: change an entry of a memref."""
        name = self._operand(value, self._memref(target, "the target").element)
        places = self._operands(indices, INDEX)
        target_ = self._name(target)
        self._write(AtomicStore(scope=scope, semantics=semantics, value=name, target=target_, indices=places))

    def size(self, operand: Value, mode: int = 0) -> Value:
        """`size`: extent of a mode of a memref, or number of members of a group."""
        return self._write_one(Size(operand=self._name(operand), mode=mode), INDEX)

    def expand(self, operand: Value, mode: int, shape: Sequence[Place]) -> Value:
        """`expand`: a view with a mode seen as several."""
        type_ = self._with_mode(operand, mode)
        parts = tuple(self._extent(extent) for extent in shape)
        expand = Expand(operand=self._name(operand), mode=mode, shape=parts)
        return self._write_one(expand, expanded(type_, mode, parts))

    def fuse(self, operand: Value, first: int, last: int) -> Value:
        """`fuse`: a view with the modes `first` to `last`, both of them included, seen as one."""
        type_ = self._with_mode(operand, last)
        if not 0 <= first < last:
            raise UsageError(f"expected modes first < last, got {first} and {last}", self.here())
        return self._write_one(Fuse(operand=self._name(operand), first=first, last=last), fused(type_, first, last))

    def subview(self, operand: Value, *parts: Part) -> Value:
        """`subview`: a view of a part.

        Args:
            operand: A memref.
            parts: For each mode an index, which removes the mode; (offset, size); or `slice(None)` for all of it.
        """
        type_ = self._memref(operand, "the operand")
        if len(parts) != type_.order:
            message = f"subview of {operand!r}: expected a slice each mode, {type_.order}, got {len(parts)}"
            raise UsageError(message, self.here())
        slices = tuple(self._slice(operand, type_.shape[mode], mode, part) for mode, part in enumerate(parts))
        return self._write_one(Subview(operand=self._name(operand), slices=slices), sliced(type_, slices))

    def _dimensional(self, name: BuiltinName, component: Component, type_: ScalarType) -> Value:
        return self._write_one(Builtin(name=name, component=component), type_)

    def _update(
        self,
        op: UpdateOp,
        value: Operand,
        target: Value,
        indices: Sequence[Operand],
        scope: Scope,
        semantics: Semantics,
    ) -> Value:
        element = self._memref(target, "the target").element
        name = self._operand(value, element)
        places = self._operands(indices, INDEX)
        target_ = self._name(target)
        update = AtomicUpdate(op=op, scope=scope, semantics=semantics, value=name, target=target_, indices=places)
        return self._write_one(update, element)

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

    def _extent(self, extent: Place) -> int | Name:
        return extent if isinstance(extent, int) else self._name(extent)

    def _slice(self, operand: Value, extent: Extent, mode: int, part: Part) -> Slice:
        if isinstance(part, slice):
            if part != slice(None):
                message = "write (offset, size) for a part of a mode; only slice(None) has a meaning"
                raise UsageError(message, self.here())
            return Slice(0, self.size(operand, mode).name if extent is None else extent)
        if isinstance(part, tuple):
            offset, size = part
            return Slice(self._extent(offset), self._extent(size))
        return Slice(self._extent(part))
