"""The products of a file, and those that the command line names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tlx.diagnostics import UsageError
from tlx.files import AS_NAMED, Reading
from tlx.knobs import NO_KNOBS, OPENMP, Knobs, Question
from tlx.pipeline import Options, lower_text
from tlx.target import Target
from tlx.tune.product import TYPES, on_threads, parse_product


def products_of_file(path: str, target: Target, threads: int = 1, reading: Reading = AS_NAMED) -> list[Question]:
    """The products that are left to kernels when a file is lowered for so many threads, each once.

    Raises:
        TlxError: The file cannot be read or lowered.
    """
    from tlx import files

    found: dict[Question, None] = {}

    def note(question: Question) -> Knobs:
        found[replace(question, text=on_threads(question.text, threads))] = None
        return NO_KNOBS

    options = Options(stop_after="to-tiles", verify_each=False, knobs=note, threads="openmp" if threads > 1 else "none")
    text = files.read_ir(path, options.threads, reading)
    lower_text(text, files.ir_name(path, reading), target, options=options)
    return list(found)


def products_of_shapes(
    shapes: Sequence[str], types: Sequence[str], layout: str, target: Target, threads: int = 1, *, fused: bool = False
) -> list[Question]:
    """The products of some shapes, `64x64x64`, and types, for a target and so many threads.

    Raises:
        UsageError: One is none.
    """
    found: list[Question] = []
    for name in types:
        if name not in TYPES:
            raise UsageError(f"unknown types '{name}'; known are {', '.join(TYPES)}")
        for shape in shapes:
            words = f"matmul {shape} {TYPES[name]}{'' if layout == 'nn' else f' {layout}'}"
            text = parse_product(words).gemm.words + " fused" * fused + f" {OPENMP}" * (threads > 1)
            found.append(Question(on_threads(text, threads), target.name, target.features))
    return found
