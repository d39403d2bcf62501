"""Dataclasses behave as those of the standard library, before and after their methods are generated."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from tlx.ir.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list[str], compare=False)
    name: str = field(default="p", repr=False, kw_only=True)
    total: int = field(init=False)
    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


@dataclass
class _Counter:
    count: int = 0
    _steps: list[int] = field(default_factory=list[int], init=False)


@dataclass(frozen=True)
class _Base:
    a: int


@dataclass(frozen=True, slots=True)
class _Derived(_Base):
    b: int = 3


@dataclass(eq=False)
class _Identity:
    value: int


@dataclass(frozen=True)
class _OwnEquality:
    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OwnEquality)

    def __hash__(self) -> int:
        return 7


def test_arguments_and_defaults() -> None:
    point = _Point(1, tags=["a"], name="q")
    assert (point.x, point.y, point.tags, point.name, point.total) == (1, 2, ["a"], "q", 3)
    assert _Point(1).tags is not _Point(1).tags
    assert _Counter().count == 0
    assert _Derived(1).b == 3


@pytest.mark.parametrize("arguments", [{}, {"x": 1, "z": 1}])
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"_Point\.__init__\(\)"):
        _Point(**arguments)


def test_equality_and_hashes_are_by_fields() -> None:
    assert _Point(1, tags=["a"]) == _Point(1, tags=["b"])
    assert _Point(1) != _Point(2)
    assert _Point(1) != (1, 2)
    assert hash(_Derived(1)) == hash(_Derived(1, 3))
    assert _Derived(1) != _Base(1)
    assert _Counter(1) == _Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(_Counter())
    assert _Identity(1) != _Identity(1)
    assert _OwnEquality(1) == _OwnEquality(2)
    assert hash(_OwnEquality(1)) == 7


@pytest.mark.parametrize("value", [_Point(1), _Derived(1)])
def test_frozen(value: Any) -> None:
    name = fields(value)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, 5)
    with pytest.raises(FrozenInstanceError):
        delattr(value, name)


def test_functions_of_the_standard_library() -> None:
    assert [f.name for f in fields(_Point)] == ["x", "y", "tags", "name", "total"]
    assert replace(_Point(1), x=5).total == 7
    assert dataclasses.asdict(_Derived(1)) == {"a": 1, "b": 3}
    assert repr(_Point(1)) == "_Point(x=1, y=2, tags=[], total=3)"
    assert str(inspect.signature(_Derived)) == "(a: int, b: int = 3)"
    match _Derived(1):
        case _Derived(a, b):
            assert (a, b) == (1, 3)


@pytest.mark.parametrize("value", [_Point(1, tags=["a"]), _Derived(1), _Base(2), _Counter(4)])
def test_copies(value: object) -> None:
    for same in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert same == value
        assert repr(same) == repr(value)


def test_slots() -> None:
    assert not hasattr(_Point(1), "__dict__")


def test_recursion() -> None:
    counter = _Counter()
    holder: Any = _Identity(0)
    holder.value = holder
    assert "..." in repr(holder)
    assert counter.count == 0
