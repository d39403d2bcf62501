"""Tensor kernels for Numba: code in nopython mode calls them, linked as LLVM IR.

    @tlx.numba.kernel("float32[32,784], float32[784,10], float32[10]")
    def layer(g, x, w, b):                       # the function on arrays, written with tensor operations
        return g.softmax(x @ w + b)

    gemm = tlx.numba.compile("gemm.ll")          # or LLVM IR, or a file of a language of TLX

    @numba.njit(parallel=True)
    def classify(images, w, b):
        for i in numba.prange(len(images)):
            ... layer(images[i], w, b) ...

signatures      element types and shapes that kernels are declared with
program         what is lowered: TLX IR, and a function that Numba's code calls
linking         a program in Numba's code, and in its cache on disk
kernels         what all kernels have: a Numba type, overloads by shape, checks of arguments
graph_kernels   kernels of functions that build graphs
module_kernels  kernels of functions of modules

The package `numba` is imported when the first kernel is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tlx.api.cache import CacheSetting
    from tlx.frontends.numba.kernels import NumbaKernel
    from tlx.ir.module import Module
    from tlx.target.target import Target


def kernel(
    signature: str | Sequence[str],
    *,
    target: Target | str | None = None,
    cache: CacheSetting = False,
    **settings: Any,
) -> Callable[[Callable[..., Any]], NumbaKernel]:
    """Make a kernel of a function that builds a graph: a decorator.

    The function takes the graph (`tlx.Graph`) and a `tlx.graph.Value` for each array or number of the signature; it
    returns a value, or a tuple of values. It is called once for each signature, when the kernel is made.

    Args:
        signature: Element types and shapes of the arguments: `float32[8,16], float32[16], float32`; or several such
            signatures, of which a call takes the one that its arrays have.
        target: The machine to aim at; by default the one that Numba generates code for.
        cache: Whether to keep lowered kernels in TLX's cache on disk, as for `tlx.compile`.
        **settings: Fields of `tlx.lower.options.Options`: `bf16_intermediates="float"`, ...

    Raises:
        UsageError: Numba is not installed, a signature or a setting is invalid, or the function does not fit.
    """
    _require_numba()
    from tlx.frontends.numba.graph_kernels import GraphKernel
    from tlx.frontends.numba.linking import numba_target
    from tlx.frontends.numba.program import Lowering

    if callable(signature):
        name = getattr(signature, "__name__", "f")
        raise UsageError(
            f"tlx.numba.kernel: {name}: shapes are missing, which Numba's types do not have; "
            'write @tlx.numba.kernel("float32[8,16], float32[16,4]")'
        )
    if not isinstance(signature, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(
            f'tlx.numba.kernel: expected a signature such as "float32[8,16]", or a list, got {signature!r}'
        )
    lowering = Lowering.of(numba_target() if target is None else target, cache, settings)
    signatures = [signature] if isinstance(signature, str) else list(signature)
    return lambda function: GraphKernel(function, signatures, lowering)


def compile(  # noqa: A001 (as tlx.compile)
    source: Module | str | os.PathLike[str],
    *,
    entry: str | None = None,
    language: str = "",
    std: str = "",
    target: Target | str | None = None,
    cache: CacheSetting = False,
    **settings: Any,
) -> NumbaKernel:
    """Make a kernel of a function of a module or a file.

    The function's pointers take arrays, its numbers take numbers, as in Python by `tlx.compile`.

    Args:
        source: A module (it is not changed), a text, or the path of a file.
        entry: Name of the function; needed only if there are several.
        language: Language of a text or a file, as for `tlx.compile`.
        std: Version of that language; its newest by default.
        target: The machine to aim at; by default the one that Numba generates code for.
        cache: Whether to keep the lowered module in TLX's cache on disk, as for `tlx.compile`.
        **settings: Fields of `tlx.lower.options.Options`.

    Raises:
        TlxError: Numba is not installed, the file cannot be read, the module is invalid, or the function takes or
            returns a type that Numba has no counterpart for.
    """
    _require_numba()
    from tlx.frontends.numba.linking import numba_target
    from tlx.frontends.numba.module_kernels import ModuleKernel
    from tlx.frontends.numba.program import Lowering, read_module

    lowering = Lowering.of(numba_target() if target is None else target, cache, settings)
    return ModuleKernel(read_module(source, language, std), entry, lowering)


def _require_numba() -> None:
    """Reject calls where Numba is not installed."""
    try:
        importlib.import_module("numba")
    except ImportError as error:
        message = f"tlx.numba needs Numba: pip install 'tlx-ir[numba]' ({error})"
        raise UsageError(message) from None
