"""Sizes of subgroups and work-groups.

The subgroup size is the function's attribute. Without one it is 16, or the largest power of two that divides the first
mode of the work-group where that is no multiple of 16. Without a work-group size, a work-group is one subgroup.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.ast.base import Function

DEFAULT_SUBGROUP_SIZE: Final = 16
LARGEST_SUBGROUP: Final = 128
LARGEST_WORK_GROUP: Final = 1 << 16


def default_subgroup_size(rows: int) -> int:
    """The subgroup size of a work-group with that many work-items in its first mode."""
    return math.gcd(rows, DEFAULT_SUBGROUP_SIZE)


def work_group(kernel: Function) -> tuple[int, tuple[int, int]]:
    """Subgroup size and work-group size of a kernel that keeps the rules."""
    size = kernel.attributes.get("subgroup_size")
    shape = kernel.attributes.get("work_group_size")
    lanes = size.value if size is not None and isinstance(size.value, int) else None
    if shape is None or not isinstance(shape.value, tuple):
        lanes = lanes or DEFAULT_SUBGROUP_SIZE
        return lanes, (lanes, 1)
    rows, columns = (entry.value for entry in shape.value)
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    return lanes or default_subgroup_size(rows), (rows, columns)
