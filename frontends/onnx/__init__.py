"""ONNX: models in files, run with onnxruntime's interface.

    session = tlx.onnx.InferenceSession("model.onnx")
    session.run(None, {"input": array})     the outputs
    tlx.onnx.lower("model.onnx")            the TLX IR

model      the file, read and checked
tensors    operations on tensors that are known while a model is translated, and on values of the graph
table      the table of operators; `operators/` has them by subject
loops      loops over the rows of sequences
simplify   rewriting of nodes: normalization merged into weights
translate  nodes to operations of `tlx.graph`
session    `InferenceSession`: compiled functions by the shapes of the inputs
reference  the page of the documentation with the table
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tlx.frontends.onnx.model import ModelError as ModelError
    from tlx.frontends.onnx.session import InferenceSession as InferenceSession
    from tlx.frontends.onnx.session import lower as lower

LANGUAGE: Final = "onnx"  # its name for `-x`
TITLE: Final = "ONNX"
STANDARDS: Final = ()
SUFFIXES: Final = (".onnx",)  # of files that READ reads
_HOME: Final = {"InferenceSession": "session", "ModelError": "model", "lower": "session"}


def READ(data: bytes, filename: str) -> str:  # noqa: N802 (front ends are discovered by this name)
    """The TLX IR of a model, whose inputs have fixed shapes."""
    from tlx.frontends.onnx.session import translated_text

    return translated_text(data, filename)


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it: commands that read no model do not import onnx.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in _HOME:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(_HOME)
