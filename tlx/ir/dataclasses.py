"""`dataclass` of the standard library, whose methods are generated when they are first called.

The standard library generates and compiles the methods of each class where the class is defined, half a millisecond a
class. A compilation defines 350 classes and calls few of their methods. The fields are those of the standard library,
so that its functions, such as `replace` and `fields`, work as usual.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from inspect import Parameter, Signature
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (pyright takes it for an export)
else:

    def dataclass(cls: type | None = None, /, *, repr: bool = True, **settings: bool) -> Any:  # noqa: A002
        """Make a class a dataclass: the arguments are those of `dataclasses.dataclass`."""

        def decorate(cls: type) -> type:
            return _with_methods(cls, has_repr=repr, **settings)

        return decorate if cls is None else decorate(cls)


def _with_methods(
    cls: type,
    *,
    frozen: bool = False,
    eq: bool = True,
    slots: bool = False,
    kw_only: bool = False,
    has_repr: bool = True,
) -> type:
    """The class with the methods of a dataclass; a new class if it gets slots."""
    own: dict[str, Any] = dict(vars(cls))
    cls.__doc__ = cls.__doc__ or cls.__name__  # the standard library would describe the signature
    define: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    new: Any = define(cls)
    if "__init__" not in own:
        _define_later(new, "__init__", _init_function)
        new.__signature__ = _ClassSignature()
    if has_repr and "__repr__" not in own:
        new.__repr__ = _repr
    if eq and "__eq__" not in own:
        _define_later(new, "__eq__", _eq_function)
    has_hash = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    if eq and not has_hash:
        new.__hash__ = None
        if frozen:
            _define_later(new, "__hash__", _hash_function)
    if frozen:
        _freeze(new)
        if slots:
            new.__getstate__ = own.get("__getstate__", _state)
            new.__setstate__ = own.get("__setstate__", _set_state)
    return new


def _define_later(cls: type, name: str, generate: Callable[[type], Callable[..., Any]]) -> None:
    """Give a class a method that replaces itself by the generated one when it is called."""

    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        generated = generate(cls)
        generated.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, generated)
        return generated(self, *arguments, **named)

    setattr(cls, name, method)


def _init_function(cls: type) -> Callable[..., Any]:
    """The `__init__` of a class; attributes of frozen ones are set by the descriptors of slots, which is fastest."""
    known: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body: list[str] = []
    for number, field in enumerate(_fields(cls)):
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            known[f"_default_{number}"] = field.default_factory
            value = f"_default_{number}() if {name} is _missing else {name}" if field.init else f"_default_{number}()"
        elif field.default is not MISSING:
            known[f"_default_{number}"] = field.default
            value = name if field.init else f"_default_{number}"
        elif not field.init:
            continue
        if field.init:
            default = "_missing" if field.default_factory is not MISSING else f"_default_{number}"
            has_default = f"_default_{number}" in known
            parameters[bool(field.kw_only)].append(f"{name}={default}" if has_default else name)
        slot = getattr(cls, name, None)
        if cls.__setattr__ is object.__setattr__:
            body.append(f"self.{name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            known[f"_set_{number}"] = slot.__set__
            body.append(f"_set_{number}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ["self", *parameters[False], *(["*"] if parameters[True] else []), *parameters[True]]
    return _compiled("__init__", listed, body, known)


def _eq_function(cls: type) -> Callable[..., Any]:
    compared = [field.name for field in _fields(cls) if field.compare]
    equal = f"{_tuple('self', compared)} == {_tuple('other', compared)}"
    body = [f"return {equal} if other.__class__ is self.__class__ else NotImplemented"]
    return _compiled("__eq__", ["self", "other"], body, {})


def _hash_function(cls: type) -> Callable[..., Any]:
    hashed = [field.name for field in _fields(cls) if (field.compare if field.hash is None else field.hash)]
    return _compiled("__hash__", ["self"], [f"return hash({_tuple('self', hashed)})"], {})


def _fields(cls: Any) -> Sequence[Field[Any]]:
    return fields(cls)


def _tuple(owner: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _compiled(name: str, parameters: Sequence[str], body: Sequence[str], known: dict[str, Any]) -> Callable[..., Any]:
    """A function of that name, whose global names are the known ones."""
    lines = "\n ".join(body or ["pass"])
    exec(f"def {name}({', '.join(parameters)}):\n {lines}", known)
    return known[name]


class _ClassSignature:
    """The signature of a class by its fields, for documentation: that of the method before the first call is not."""

    def __get__(self, instance: object, owner: type) -> Signature:
        kinds = {False: Parameter.POSITIONAL_OR_KEYWORD, True: Parameter.KEYWORD_ONLY}
        parameters: list[Parameter] = []
        for field in sorted(_fields(owner), key=lambda field: bool(field.kw_only)):
            default = Parameter.empty if field.default is MISSING else field.default
            default = default if field.default_factory is MISSING else field.default_factory
            if field.init:
                kind = kinds[bool(field.kw_only)]
                parameters.append(Parameter(field.name, kind, default=default, annotation=field.type))
        return Signature(parameters)


@recursive_repr()
def _repr(self: Any) -> str:
    values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in _fields(self) if field.repr)
    return f"{type(self).__qualname__}({values})"


def _freeze(cls: type) -> None:
    """Make setting and deleting the attributes of a class errors."""
    names = {field.name for field in _fields(cls)}

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    frozen: Any = cls
    frozen.__setattr__, frozen.__delattr__ = set_attribute, delete_attribute


def _state(self: Any) -> list[Any]:
    """What is pickled of an object with slots."""
    return [getattr(self, field.name) for field in _fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(_fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
