"""The table of StableHLO operations: each operation once, with the function that translates it.

elementwise    arithmetic, comparisons, functions, conversions, selection
shapes         constants, broadcasts, slices, pads, ...
products       products and convolutions
linear_algebra factors of matrices, triangular systems
reductions     over dimensions and windows; the gradient of pooling
indexing       gather, scatter, slices at positions that are values
control_flow   calls, loops, conditionals, random bits
sorting        sorting by keys
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
from tlx.frontends.jax.translation import TranslationRule

RULES: Final[dict[str, TranslationRule]] = {
    name: rule
    for module in (control_flow, elementwise, indexing, linear_algebra, products, reductions, shapes, sorting)
    for name, rule in module.RULES.items()
}

_DEVICES: Final = "TLX runs a program on one machine: export the function without sharding, pmap and collectives"
_COMPLEX: Final = "complex numbers are not supported: compute with real and imaginary parts"
_DYNAMIC: Final = "shapes that depend on values are not supported: export the function for fixed shapes"
_TUPLE: Final = "tuples are not supported: export the function again with a newer JAX, which writes none"
_OLD: Final = "this operation is obsolete: export the function again with a newer JAX"
_TOKENS: Final = "a compiled function has no side effects: move input and output out of it"
_QUANTISED: Final = "quantised types are not supported: write scales and integers explicitly"

REFUSED: Final[dict[str, str]] = {
    "stablehlo.after_all": _TOKENS,
    "stablehlo.all_gather": _DEVICES,
    "stablehlo.all_reduce": _DEVICES,
    "stablehlo.all_to_all": _DEVICES,
    "stablehlo.async_done": _DEVICES,
    "stablehlo.async_start": _DEVICES,
    "stablehlo.batch_norm_grad": "not supported: write the normalisation as means and products, as jax.numpy does",
    "stablehlo.batch_norm_inference": "not supported: write the normalisation as means and products, as jax.numpy does",
    "stablehlo.batch_norm_training": "not supported: write the normalisation as means and products, as jax.numpy does",
    "stablehlo.collective_broadcast": _DEVICES,
    "stablehlo.collective_permute": _DEVICES,
    "stablehlo.complex": _COMPLEX,
    "stablehlo.create_token": _TOKENS,
    "stablehlo.cross-replica-sum": _DEVICES,
    "stablehlo.dynamic_broadcast_in_dim": _DYNAMIC,
    "stablehlo.dynamic_conv": _DYNAMIC,
    "stablehlo.dynamic_gather": _DYNAMIC,
    "stablehlo.dynamic_iota": _DYNAMIC,
    "stablehlo.dynamic_pad": _DYNAMIC,
    "stablehlo.dynamic_reshape": _DYNAMIC,
    "stablehlo.einsum": _OLD,
    "stablehlo.fft": "Fourier transforms are not supported: call numpy.fft outside of the compiled function",
    "stablehlo.get_dimension_size": _DYNAMIC,
    "stablehlo.get_tuple_element": _TUPLE,
    "stablehlo.imag": _COMPLEX,
    "stablehlo.infeed": _TOKENS,
    "stablehlo.outfeed": _TOKENS,
    "stablehlo.partition_id": _DEVICES,
    "stablehlo.real": _COMPLEX,
    "stablehlo.real_dynamic_slice": _DYNAMIC,
    "stablehlo.recv": _DEVICES,
    "stablehlo.reduce_scatter": _DEVICES,
    "stablehlo.replica_id": _DEVICES,
    "stablehlo.rng": "numbers without a key are not reproducible: use jax.random",
    "stablehlo.send": _DEVICES,
    "stablehlo.set_dimension_size": _DYNAMIC,
    "stablehlo.torch_index_select": _OLD,
    "stablehlo.tuple": _TUPLE,
    "stablehlo.unary_einsum": _OLD,
    "stablehlo.uniform_dequantize": _QUANTISED,
    "stablehlo.uniform_quantize": _QUANTISED,
}
"""Operations that are not translated, and what to do instead."""
