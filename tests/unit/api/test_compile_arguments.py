"""Arguments of `tlx.compile` of a wrong type are errors that name the argument."""

from __future__ import annotations

from typing import Any

import pytest

import tlx
from tlx.diagnostics import UsageError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": None}, "invalid value for 'target': None is not a target or the name of one"),
        ({"options": 3}, "invalid value for 'options': 3 is not tlx.Options"),
        ({"opt_level": "2"}, "invalid value for 'opt_level': '2' is not a number"),
        ({"opt_level": 2.0}, "invalid value for 'opt_level': 2.0 is not a number"),
        ({"libraries": "libm.so.6"}, "invalid value for 'libraries': 'libm.so.6' is not a list of paths"),
        ({"cache": 3}, "invalid value for 'cache': 3 is not True, False or a directory"),
    ],
)
def test_wrong_types(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        tlx.compile("define void @f() {\n  ret void\n}\n", **arguments)
    assert caught.value.message == message
