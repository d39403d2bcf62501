"""Natural loops: their induction variables, and the values that these take."""

from __future__ import annotations

import pytest

from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.parser.module import parse_fully

_LOOP = """
define void @f(i64 %n, i1 %c) {{
entry:
  br label %loop
loop:
  %other = phi i64 [ 7, %entry ], [ %changed, %loop ]
  %i = phi i64 [ {first}, %entry ], [ %next, %loop ]
  %changed = add i64 %other, 3
  %next = add i64 {added}
  %test = icmp {test}
  %later = icmp slt i64 %changed, 50
  br i1 {branch}
end:
  ret void
}}
"""
_BACK = "%test, label %loop, label %end"
_OUT = "%test, label %end, label %loop"


def _loop(test: str, branch: str = _BACK, first: str = "0", added: str = "%i, 1") -> Loop:
    (loop,) = FunctionLoops(
        parse_fully(_LOOP.format(test=test, branch=branch, first=first, added=added)).functions[0]
    ).loops
    return loop


@pytest.mark.parametrize(
    ("test", "branch", "first", "values"),
    [
        ("slt i64 %next, 10", _BACK, "0", range(10)),
        ("ult i64 %next, 10", _BACK, "4", range(4, 10)),
        ("sle i64 %next, 10", _BACK, "-2", range(-2, 11)),
        ("ule i64 %next, 10", _BACK, "0", range(11)),
        ("ne i64 %next, 10", _BACK, "0", range(10)),
        ("eq i64 %next, 10", _OUT, "0", range(10)),
        ("sge i64 %next, 10", _OUT, "0", range(10)),
        ("ugt i64 %next, 10", _OUT, "0", range(11)),
        ("slt i64 %next, -5", _BACK, "0", range(0)),
    ],
)
def test_values_of_the_index(test: str, branch: str, first: str, values: range) -> None:
    """The tested phi is the index, wherever it is among the phis, and whatever is compared after the test."""
    loop = _loop(test, branch, first)
    assert (loop.index, loop.test) != (None, None)
    assert loop.index is not None
    assert (loop.index.result, loop.bounds, loop.trips) == ("i", values, max(1, len(values)))


def test_step() -> None:
    """An index may advance by more than one; a test for equality must then be met."""
    assert _loop("slt i64 %next, 10", added="%i, 4").bounds == range(0, 10, 4)
    assert _loop("ne i64 %next, 12", added="%i, 4").bounds == range(0, 12, 4)
    assert _loop("ne i64 %next, 10", added="%i, 4").bounds is None


@pytest.mark.parametrize(
    ("test", "branch", "first", "added"),
    [
        ("slt i64 %next, %n", _BACK, "0", "%i, 1"),
        ("slt i64 %next, 10", _BACK, "%n", "%i, 1"),
        ("slt i64 %next, 10", _BACK, "0", "%i, %n"),
        ("slt i64 %next, 10", _BACK, "0", "%other, 1"),
        ("slt i64 %next, 10", _OUT, "0", "%i, 1"),
        ("sgt i64 %next, -10", _BACK, "0", "%i, -1"),
        ("ult i64 %next, -10", _BACK, "0", "%i, 1"),
    ],
)
def test_unknown_values(test: str, branch: str, first: str, added: str) -> None:
    """A loop whose trip count is not known counts as one iteration."""
    loop = _loop(test, branch, first, added)
    assert (loop.bounds, loop.trips) == (None, 1)


@pytest.mark.parametrize(
    ("test", "added"),
    [("slt i8 %next, 127", "%i, 3"), ("sle i8 %next, 127", "%i, 1"), ("ult i8 %next, 120", "%i, 100")],
)
def test_narrow_indices_that_wrap_around(test: str, added: str) -> None:
    """An index that passes the largest signed number of its type has no bounds."""
    text = _LOOP.format(test=test, branch=_BACK, first="0", added=added)
    text = text.replace("%i = phi i64", "%i = phi i8").replace("%next = add i64", "%next = add i8")
    (loop,) = FunctionLoops(parse_fully(text).functions[0]).loops
    assert (loop.index is not None, loop.bounds) == (True, None)


@pytest.mark.parametrize("branch", ["%c, label %loop, label %end", "false, label %loop, label %end"])
def test_branches_that_test_no_index(branch: str) -> None:
    """A comparison that the branch does not depend on is no test."""
    loop = _loop("slt i64 %next, 10", branch)
    assert (loop.test, loop.index, loop.bounds) == (None, None, None)


def test_switches_that_test_an_index() -> None:
    """A switch lists its default first, which is where a false condition leads to."""
    branch = "br i1 %test, label %loop, label %end"
    text = _LOOP.format(test="slt i64 %next, 10", branch=branch.removeprefix("br i1 "), first="0", added="%i, 1")
    assert branch in text
    text = text.replace(branch, "switch i1 %test, label %loop [ i1 true, label %end ]")
    (loop,) = FunctionLoops(parse_fully(text).functions[0]).loops
    assert (loop.test, loop.bounds) == (None, None)
