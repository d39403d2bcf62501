"""Attributes that the language knows, by what they stand at.

Any other name is written as a string; it means nothing to the language, and is kept. Some of these mean something here.
"""

from __future__ import annotations

from typing import Final

OF_FUNCTIONS: Final = ("subgroup_size", "work_group_size")
OF_PARAMETERS: Final = ("alignment", "shape_gcd", "stride_gcd")  # memrefs and groups
OF_ALLOCA: Final = ("alignment",)
OF_FOR: Final = ("unroll",)

ATTRIBUTE_NAMES: Final = tuple(sorted({*OF_FUNCTIONS, *OF_PARAMETERS, *OF_ALLOCA, *OF_FOR}))

WIDE_FACTORS: Final = "wide_factors"
"""A string on functions, converted from version 1: alpha has any type that the output holds, and beta of `.atomic`
updates is any number."""
