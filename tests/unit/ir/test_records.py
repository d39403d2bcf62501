"""Records behave like frozen data classes, except that only type checkers refuse assignments."""

from dataclasses import replace

from tlx.ir.values import record


@record
class _Point:
    x: int
    y: int = 0


def test_records_are_values() -> None:
    assert _Point(1) == _Point(1, 0) != _Point(1, 2)
    assert {_Point(1): "a"}[_Point(1, 0)] == "a"
    assert replace(_Point(1), y=3) == _Point(1, 3)
    assert repr(_Point(1)) == "_Point(x=1, y=0)"


def test_records_are_as_small_as_their_fields() -> None:
    assert not hasattr(_Point(1), "__dict__")


def test_making_a_record_calls_no_function_for_each_field() -> None:
    """`object.__setattr__` for each field is what makes frozen data classes slow."""
    assert "__setattr__" not in _Point.__init__.__code__.co_names
