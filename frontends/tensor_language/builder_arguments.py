"""What the builder is given: compared at each call with the annotations of the method, before anything is written.

    k.cooperative_matrix_store(c, k.C, 0, 0, checked="both")

    kernel.py:5:9: error: cooperative_matrix_store: checked must be 'rows_checked', 'cols_checked', 'both_checked' or
    None, got 'both': did you mean 'both_checked'?

The public methods of a class derived from `Checked` are wrapped by themselves; functions take `checked`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.annotations import Misfit, expectation, fitted
from tlx.frontends.tensor_language.builder_places import place_of_call
from tlx.frontends.tensor_language.builder_values import NoValue, Value
from tlx.frontends.tensor_language.parser_hints import did_you_mean
from tlx.frontends.tensor_language.types import CoopMatrixType, GroupType, MemrefType, ScalarType

_TYPE: Final = "a type such as 'memref<f32x4x8>'"
_NAMES: Final[Mapping[Any, str]] = {
    Value: "a value of the kernel",
    Mapping: "a dictionary",
    **dict.fromkeys((ScalarType, MemrefType, GroupType, CoopMatrixType), _TYPE),
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Checked:
    """Base of classes whose public methods compare what they are given with their annotations."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(cls, name, checked(method))


def checked(function: _Function) -> _Function:
    """A function that raises a `UsageError` at the place of the call where an argument is not as annotated."""

    @wraps(function)
    def compared(*arguments: Any, **named: Any) -> Any:
        signature, hints = _signature(function)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            unknown = next((name for name in named if name not in signature.parameters), "")
            near = did_you_mean(unknown, signature.parameters)
            message = f"{function.__name__}: {error}" + (near and f": {near}")
            raise UsageError(message, place_of_call()) from None
        for name, value in bound.arguments.items():
            if name != "self":
                parameter = signature.parameters[name]
                bound.arguments[name] = _compared(function.__name__, parameter, hints.get(name, Any), value)
        return function(*bound.args, **bound.kwargs)

    return cast("_Function", compared)


@cache
def _signature(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(function), get_type_hints(function)


def _compared(function: str, parameter: inspect.Parameter, hint: Any, value: Any) -> Any:
    if parameter.kind == parameter.VAR_POSITIONAL:
        return tuple(_argument(function, parameter.name, hint, item) for item in value)
    if parameter.kind == parameter.VAR_KEYWORD:
        return {name: _argument(function, name, hint, item) for name, item in value.items()}
    return _argument(function, parameter.name, hint, value)


def _argument(function: str, name: str, hint: Any, value: Any) -> Any:
    try:
        return fitted(value, hint)
    except Misfit:
        use = f": {value.USE}" if isinstance(value, NoValue) else ""
        names = {**_NAMES, str: _TYPE} if ScalarType in get_args(hint) else _NAMES  # strings spell types there
        raise UsageError(f"{function}: {name} {expectation(hint, names, value)}{use}", place_of_call()) from None
