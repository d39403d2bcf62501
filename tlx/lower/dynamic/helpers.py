"""Helper functions: internal functions that compute on tensors of run-time size, shared by equal operations.

    call void @tlx.dynamic.copy.r2.i32(ptr %to, ptr %from, i64 %rows, i64 %columns, ...)

They have the target's features, as kernels do, and keep control flow out of their callers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tlx.ir.builder import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, VOID, FunctionType, Type
from tlx.ir.values import Global, Local, Value
from tlx.lower.context import LoweringContext

HelperBody = Callable[[TensorBuilder, dict[str, Local]], None]
"""Fills a function, given a builder in its entry block and its parameters by name; `ret` is added."""


@dataclass(frozen=True, slots=True)
class NoAliasPointer:
    """The type of a `noalias` pointer parameter, by the type of its elements."""

    element: Type


HelperParameters = Sequence[tuple[str, Type | NoAliasPointer]]
"""Names and types; `NoAliasPointer` for pointers."""


@dataclass(eq=False)
class HelperFunctions:
    """The helper functions of a module."""

    module: Module
    context: LoweringContext
    _functions: dict[tuple[str, tuple[str, ...]], Function] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], Function]
    )

    def call(
        self, b: Builder, name: str, parameters: HelperParameters, args: Sequence[Value], build: HelperBody
    ) -> None:
        """Call a helper; it is created if none has that name and the features of the caller's target."""
        features = self.context.target_of(self.module, b.function).features
        key = name, features
        if key not in self._functions:
            self._functions[key] = self._make(name, parameters, features, build)
        passed = [
            b.retype(a, type_.element) if isinstance(type_, NoAliasPointer) else a
            for (_, type_), a in zip(parameters, args, strict=True)
        ]
        type_ = FunctionType(VOID, tuple(a.type for a in passed))
        b.call(Global(self.module.pointer_to(type_), self._functions[key].name), type_, passed)

    def _make(self, name: str, parameters: HelperParameters, features: tuple[str, ...], build: HelperBody) -> Function:
        spelled = [
            (self.module.pointer_to(t.element), "noalias nocapture", n) if isinstance(t, NoAliasPointer) else (t, "", n)
            for n, t in parameters
        ]
        words = f' "target-features"="{",".join(features)}"' if features else ""
        name = self.module.global_names.fresh(f"tlx.dynamic.{name}")
        function = new_function(self.module, name, spelled, f"nounwind{words}")
        b = TensorBuilder(self.module, function)
        build(b, {argument.name: argument.value for argument in function.arguments})
        b.ret()
        return function


def i64_parameters(*names: str) -> list[tuple[str, Type]]:
    """Parameters of type i64."""
    return [(name, I64) for name in names]
