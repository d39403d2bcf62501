"""The recipe of a product and the knobs it was made by."""

from __future__ import annotations

from tlx.diagnostics import Note, UsageError
from tlx.ir.module import Instruction
from tlx.knobs import NO_KNOBS, OPENMP, Knobs, Question
from tlx.lower.stage import Context
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target


def chosen(context: Context, gemm: Gemm, target: Target, at: Instruction) -> tuple[Recipe, Knobs]:
    """The recipe by the knobs that the context has for a product; knobs that do not bind and do not fit are left out.

    Nobody is asked about a product of parts: of the one that they are parts of, nobody has said anything.

    Raises:
        UsageError: Knobs that bind do not fit.
    """
    if gemm.crossed:
        return choose(gemm, target), NO_KNOBS
    words = gemm.words if context.threads == "none" else f"{gemm.words} {OPENMP}"
    knobs = context.knobs(Question(words, target.name, target.features))
    try:
        return choose(gemm, target, knobs), knobs
    except UsageError as error:
        if knobs.origin is None or knobs.origin.binding:
            raise _at_home(error, gemm, knobs, at) from None
        text = f"{gemm.title}: {knobs} {knobs.origin.text} left out: {error.message}"
        context.remarks.add("missed", "to-tiles", text, at.span)
        return choose(gemm, target), NO_KNOBS


def _at_home(error: UsageError, gemm: Gemm, knobs: Knobs, at: Instruction) -> UsageError:
    """The error at the entry that asked, with the product as a second place."""
    origin = knobs.origin
    notes = [Note(f"for {gemm.words}", at.span)]
    return UsageError(error.message, origin.span if origin else None, notes)
