"""TLX: tensors for stock LLVM IR.

TLX reads LLVM IR that calls ``llvm.tensor.*`` intrinsics, lowers it in three stages (``to-2d``, ``to-tiles``,
``legalize``) and writes plain LLVM IR for one of many machines, which stock LLVM optimises and compiles.

The names below are loaded when first used, so that ``import tlx`` and ``tlx-lower --help`` stay fast:

* ``tlx.compile`` lowers, compiles and returns functions that take numpy arrays;
* ``tlx.parse`` reads LLVM IR into a module, ``tlx.lower_text`` lowers a text, ``tlx.Options`` says how, ``tlx.Remarks``
  collects what was decided, ``tlx.validate`` compares what each stage writes with the input;
* ``tlx.targets()`` lists the targets, ``tlx.find_target`` finds one by name, ``tlx.Target`` describes one;
* ``tlx.Machine`` evaluates a module on numpy arrays;
* ``tlx.TlxError`` is every error that a user can cause, ``tlx.ArgumentError`` a wrong argument of a call;
* ``tlx.graph`` is the package of tensor graphs, ``tlx.Graph`` its class;
* a front end's name gives the front end: ``tlx.matrix``, and ``import tlx.matrix``, is the package
  ``tlx.frontends.matrix``.

The function that lowers a module is ``tlx.lower.pipeline.lower``: here its name would hide the package ``tlx.lower``.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # not imported otherwise: it takes longer than all of this module
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from tlx.api.arguments import ArgumentError as ArgumentError
    from tlx.api.compiler import compile as compile  # noqa: A004 (its name is part of the interface)
    from tlx.api.validation import validate as validate
    from tlx.diagnostics import TlxError as TlxError
    from tlx.evaluate import Machine as Machine
    from tlx.graph import Graph as Graph
    from tlx.ir.parser.module import parse as parse
    from tlx.lower.options import Options as Options
    from tlx.lower.pipeline import lower_text as lower_text
    from tlx.lower.remarks import Remarks as Remarks
    from tlx.target.installed import targets as targets
    from tlx.target.lookup import find_target as find_target
    from tlx.target.target import Target as Target

__version__ = "0.1.0"

_HOME = {
    "ArgumentError": "tlx.api.arguments",
    "Graph": "tlx.graph",
    "Machine": "tlx.evaluate",
    "Options": "tlx.lower.options",
    "Remarks": "tlx.lower.remarks",
    "Target": "tlx.target.target",
    "TlxError": "tlx.diagnostics",
    "compile": "tlx.api.compiler",
    "find_target": "tlx.target.lookup",
    "lower_text": "tlx.lower.pipeline",
    "parse": "tlx.ir.parser.module",
    "targets": "tlx.target.installed",
    "validate": "tlx.api.validation",
}


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it.

    Raises:
        AttributeError: ``tlx`` has no such name.
    """
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name == "graph":
        value = import_module("tlx.graph")
    elif name in _front_ends():
        value = import_module(f"{__name__}.frontends.{name}")
    else:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazily loaded names and those already loaded."""
    return sorted({*globals(), *_HOME, "graph", *_front_ends()})


def _front_ends() -> set[str]:
    from pkgutil import iter_modules

    return {info.name for info in iter_modules(import_module(f"{__name__}.frontends").__path__)}


class _FrontEndImporter:
    """Makes ``import tlx.NAME`` import the front end ``tlx.frontends.NAME``: one module by two names.

    It is the last finder, so that modules of the core and other packages are found before it.
    """

    def find_spec(self, fullname: str, _path: object = None, _target: object = None, /) -> "ModuleSpec | None":
        """The front end's module under its short name; None for any other module."""
        package, _, front_end = fullname.rpartition(".")
        if package != __name__ or front_end not in _front_ends():
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, cast("Loader", _FrontEndImporter()))

    def create_module(self, spec: "ModuleSpec") -> "ModuleType":
        """The front end's module, imported by its own name."""
        module = import_module(f"{__name__}.frontends.{spec.name.rpartition('.')[2]}")
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: "ModuleType") -> None:
        """Give the module, which has been executed already, its own spec back."""
        module.__spec__ = self._own_spec


sys.meta_path.append(_FrontEndImporter())
