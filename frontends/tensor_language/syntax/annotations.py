"""Values checked against type annotations: the words, numbers and objects that a field or a parameter takes.

    transpose: Literal["n", "t"]            'n' or 't'
    checked: Checked | None                 'rows_checked', 'cols_checked', 'both_checked' or None
    value: Value | bool | int | float       a value of the kernel or a number

The annotations of the syntax tree define what is legal. The parser takes its words from them, the checker uses them for
trees built by programs, and the builder for the arguments of its methods: so the three cannot disagree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from tlx.frontends.tensor_language.errors import did_you_mean, listed
from tlx.frontends.tensor_language.syntax.nodes import Slice
from tlx.frontends.tensor_language.types import MAX_INTEGER

_SHOWN: Final = 60  # characters of a value in a message
_PLAIN: Final = {
    NoneType: "None",
    bool: "True or False",
    int: "an integer of 64 bits",
    str: "a string",
    slice: "slice(None)",
}

_CONVERSIONS: Final[Mapping[Any, tuple[str, ...]]] = {
    float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"),
}


class AnnotationMismatch(Exception):  # noqa: N818 (an outcome, not an error of its own)
    """A value does not match an annotation."""


def coerce(value: Any, annotation: Any) -> Any:
    """A value in the form of an annotation: integers and booleans as Python's own, sequences as tuples.

    Raises:
        AnnotationMismatch: The value does not match.
    """
    origin = get_origin(annotation)
    if origin is Literal:
        if isinstance(value, str) and value in get_args(annotation):
            return value
    elif origin in (Union, UnionType):
        return _one_of(value, get_args(annotation))
    elif origin is Sequence or (origin is tuple and get_args(annotation)[-1] is Ellipsis):
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return tuple(coerce(item, get_args(annotation)[0]) for item in cast("Sequence[Any]", value))
    elif origin is tuple:
        items = get_args(annotation)
        if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == len(items):
            return tuple(map(coerce, cast("tuple[Any, ...]", value), items))
    elif origin is not None:
        if isinstance(value, origin):
            return value
    else:
        return _plain(value, annotation)
    raise AnnotationMismatch


def _one_of(value: Any, annotations: tuple[Any, ...]) -> Any:
    for annotation in annotations:
        try:
            return coerce(value, annotation)
        except AnnotationMismatch:
            continue
    raise AnnotationMismatch


def _plain(value: Any, class_: Any) -> Any:
    is_truth = type(value).__name__ in ("bool", "bool_")  # numpy's, too, which need not be imported
    if class_ is bool and is_truth:
        return bool(value)
    if class_ is int and not is_truth:
        try:
            number = operator.index(value)
        except TypeError:
            raise AnnotationMismatch from None
        if abs(number) <= MAX_INTEGER:
            return number
    if class_ in _CONVERSIONS and not is_truth and any(hasattr(value, name) for name in _CONVERSIONS[class_]):
        return value
    if class_ is Any or (class_ not in (bool, int, float, complex) and isinstance(value, class_ or NoneType)):
        return value
    raise AnnotationMismatch


def expectation(annotation: Any, names: Mapping[Any, str], value: object) -> str:
    """`must be 'n' or 't', got 'T'; did you mean 't'?`.

    Args:
        annotation: What is legal.
        names: Names of classes in messages.
        value: The value.
    """
    legal = listed(dict.fromkeys(_phrases(annotation, names)), "or")
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    near = did_you_mean(value, literal_words(annotation)) if isinstance(value, str) else ""
    return f"must be {legal}, got {shown}{near}"


def literal_words(annotation: Any) -> tuple[str, ...]:
    """The words of the literals in an annotation."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(word for member in get_args(annotation) for word in literal_words(member))
    return ()


def _phrases(annotation: Any, names: Mapping[Any, str]) -> list[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return [repr(word) for word in arguments]
    if origin in (Union, UnionType):
        numbers = {bool, int, float, complex} if float in arguments or complex in arguments else set[Any]()
        phrases = [p for member in arguments if member not in numbers for p in _phrases(member, names)]
        return [*phrases, "a number"] if numbers else phrases
    if origin is Sequence or (origin is tuple and arguments[-1] is Ellipsis):
        entries = listed(dict.fromkeys(_phrases(arguments[0], names)), "or")
        return [f"a {'list' if origin is Sequence else 'tuple'}, each entry {entries}"]
    if origin is tuple:
        return [f"a tuple of {len(arguments)}"]
    class_ = annotation or NoneType
    return [names.get(class_) or _PLAIN.get(class_) or f"a {(origin or class_).__name__}"]


def field_problem(node: object) -> str | None:
    """Why the fields of a node or a type built by a program are invalid; None if they match their annotations."""
    for name, test, annotation in _tests(type(node)):
        value = getattr(node, name)
        if not test(value):
            return f"{name} {expectation(annotation, {}, value)}"
    return None


@cache
def _tests(class_: type[Any]) -> tuple[tuple[str, Callable[[Any], bool], Any], ...]:
    """For each field of a dataclass its name, a test of its values, and its annotation."""
    hints = get_type_hints(class_)
    return tuple((f.name, _test(hints[f.name]), hints[f.name]) for f in fields(class_) if f.name not in _UNTESTED)


_UNTESTED: Final = frozenset({"span", "results", "types"})


def _test(annotation: Any) -> Callable[[Any], bool]:
    """A fast test whether a value matches an annotation, as it runs for every field of a program."""
    if get_origin(annotation) is None and annotation not in (bool, int, float, complex, None):
        if annotation is Slice:
            return lambda value: isinstance(value, Slice) and field_problem(value) is None
        return lambda value: isinstance(value, annotation)
    if get_origin(annotation) is tuple and len(get_args(annotation)) == 2 and get_args(annotation)[1] is Ellipsis:
        item = _test(get_args(annotation)[0])
        return lambda value: isinstance(value, tuple) and all(map(item, cast("tuple[Any, ...]", value)))
    words = literal_words(annotation)
    if words and len(words) == len(get_args(annotation)):
        allowed = frozenset(words)
        return lambda value: isinstance(value, str) and value in allowed
    return lambda value: _fits(value, annotation)


def _fits(value: Any, annotation: Any) -> bool:
    try:
        return coerce(value, annotation) is value
    except AnnotationMismatch:
        return False
