"""JAX: functions and exported models, from StableHLO to TLX IR.

    step = tlx.jax.jit(step)            as jax.jit, compiled by TLX
    tlx.jax.lower(step, params, x)      its TLX IR
    tlx-lower model.mlirbc              what `jax.export` wrote

program       StableHLO as plain data
reader        reads it, by the MLIR bindings that jaxlib ships
translation   to a graph of tensors, operation by operation
operations    the table: each operation once, with the function that translates it
compilation   `jit` and `lower`
files         StableHLO in files
examples      models for fuzzers
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tlx.frontends.jax.compilation import jit as jit
    from tlx.frontends.jax.compilation import lower as lower

LANGUAGE: Final = "stablehlo"  # its name for `-x`
TITLE: Final = "StableHLO"
STANDARDS: Final = ()
SUFFIXES: Final = (".mlirbc", ".mlir")  # of files that READ reads


def READ(data: bytes, filename: str) -> str:  # noqa: N802 (front ends are discovered by this name)
    """The TLX IR of a portable artifact of StableHLO, or of MLIR text."""
    from tlx.frontends.jax.files import translate_file

    return translate_file(data, filename)


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in ("jit", "lower"):
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(f"{__name__}.compilation"), name)
    globals()[name] = value
    return value
