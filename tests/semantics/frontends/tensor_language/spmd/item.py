"""The number of a work-item in its work-group, which programs write at their start."""

from __future__ import annotations

from typing import Final

ITEM: Final = """
    %l = subgroup_local_id : i32
    %s = subgroup_linear_id : i32
    %size = subgroup_size : i32
    %b = mul %s, %size : i32
    %g = add %b, %l : i32
    %i = cast %g : index
"""
