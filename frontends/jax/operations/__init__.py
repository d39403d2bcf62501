"""The table of StableHLO operations: each operation once, with the function that translates it.

elementwise    arithmetic, comparisons, functions, conversions, selection
shapes         constants, broadcasts, slices, pads, ...
products       products and convolutions
linear_algebra factors of matrices, triangular systems
reductions     over dimensions and windows; the gradient of pooling
indexing       gather, scatter, slices at positions that are values
control_flow   calls, loops, conditionals, random bits
sorting        sorting by keys
unsupported    what is not translated, and what to do instead
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.jax.operations import (
    control_flow,
    elementwise,
    indexing,
    linear_algebra,
    products,
    reductions,
    shapes,
    sorting,
)
from tlx.frontends.jax.operations.unsupported import REFUSED as REFUSED
from tlx.frontends.jax.translation import TranslationRule

RULES: Final[dict[str, TranslationRule]] = {
    name: rule
    for module in (control_flow, elementwise, indexing, linear_algebra, products, reductions, shapes, sorting)
    for name, rule in module.RULES.items()
}
