"""The products of a file, and those that the command line names."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.diagnostics import UsageError
from tlx.knobs import NO_KNOBS, Knobs, Question
from tlx.pipeline import Options, lower_text
from tlx.target import Target
from tlx.tune.product import TYPES, parse_product


def products_of_file(path: str, target: Target) -> list[Question]:
    """The products that are left to kernels when a file is lowered, each once.

    Raises:
        TlxError: The file cannot be read or lowered.
    """
    from tlx import files

    found: dict[Question, None] = {}

    def note(question: Question) -> Knobs:
        found[question] = None
        return NO_KNOBS

    options = Options(stop_after="to-tiles", verify_each=False, knobs=note)
    lower_text(files.read_ir(path), files.ir_name(path), target, options=options)
    return list(found)


def products_of_shapes(shapes: Sequence[str], types: Sequence[str], layout: str, target: Target) -> list[Question]:
    """The products of some shapes, `64x64x64`, and types, for a target.

    Raises:
        UsageError: One is none.
    """
    found: list[Question] = []
    for name in types:
        if name not in TYPES:
            raise UsageError(f"unknown types '{name}'; known are {', '.join(TYPES)}")
        for shape in shapes:
            words = f"matmul {shape} {TYPES[name]}{'' if layout == 'nn' else f' {layout}'}"
            found.append(Question(parse_product(words).gemm.words, target.name, target.features))
    return found
