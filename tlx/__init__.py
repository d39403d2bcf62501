"""TLX: tensors for stock LLVM IR.

TLX reads LLVM IR that calls ``llvm.tensor.*`` intrinsics, lowers it in three stages (``to-2d``, ``to-tiles``,
``legalize``) and writes plain LLVM IR for AMX, AVX-512 or AVX2, which any LLVM can optimise and compile.

The names below are loaded when first used, so that ``import tlx`` and ``tlx-lower --help`` stay fast:

* ``tlx.parse(text, filename)`` reads LLVM IR text into a module (``tlx.ir.parser.module``);
* ``tlx.compile`` lowers, compiles and returns functions that take numpy arrays (``tlx.api.compiler``);
* a front end's name gives the front end: ``tlx.matrix`` is the package ``tlx.frontends.matrix``.

The function that runs the stages is ``tlx.lower.pipeline.lower``: here its name would hide the package ``tlx.lower``.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {"compile": "tlx.api.compiler", "parse": "tlx.ir.parser.module"}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it.

    Raises:
        AttributeError: ``tlx`` has no such name.
    """
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _front_ends():
        value = import_module(f"{__name__}.frontends.{name}")
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazily loaded names beside those already here."""
    return sorted({*globals(), *_HOME, *_front_ends()})


def _front_ends() -> set[str]:
    from pkgutil import iter_modules

    return {info.name for info in iter_modules(import_module(f"{__name__}.frontends").__path__)}
