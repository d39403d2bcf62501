"""TLX: tensors for stock LLVM IR.

TLX reads LLVM IR that calls ``llvm.tensor.*`` intrinsics, lowers it in three stages (``to-2d``, ``to-tiles``,
``legalize``) and writes plain LLVM IR for AMX, AVX-512 or AVX2, which any LLVM can optimise and compile.

The names below are loaded when first used, so that ``import tlx`` and ``tlx-lower --help`` stay fast:

* ``tlx.parse(text, filename)`` reads LLVM IR text into a module (``tlx.ir.reader``);
* ``tlx.compile`` lowers, compiles and returns functions that take numpy arrays (``tlx.jit``).

The function that runs the stages is ``tlx.pipeline.lower``: here its name would hide the package ``tlx.lower``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {"compile": "tlx.jit", "parse": "tlx.ir.reader"}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it.

    Raises:
        AttributeError: ``tlx`` has no such name.
    """
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazily loaded names beside those already here."""
    return sorted({*globals(), *_HOME})
