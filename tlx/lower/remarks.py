"""Remarks: what the lowering decided and why, for the user who asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tlx.diagnostics import Span

RemarkKind = Literal["applied", "missed", "analysis"]
ArithmeticUnit = Literal["fma", "dot", "matrix"]
"""What multiplies: multiply-adds, dot products of vectors, or a matrix unit."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How fast a product should be.

    Attributes:
        unit: What multiplies.
        share: Of that unit's peak, 0 to 1.
    """

    unit: ArithmeticUnit
    share: float


@dataclass(frozen=True, slots=True)
class Remark:
    """One decision.

    Attributes:
        kind: `applied` (done), `missed` (not done, and why), `analysis` (a fact, such as a temporary's size).
        stage: Name of the stage that says so.
        message: What was decided, in a sentence.
        span: The instruction of the user's file it is about.
        prediction: How fast what was decided should be; None where that is not known.
    """

    kind: RemarkKind
    stage: str
    message: str
    span: Span | None = None
    prediction: Prediction | None = field(default=None, compare=False)

    def render(self) -> str:
        """`file:line:col: remark: message [stage]`, with source line and caret."""
        if self.span is None:
            return f"remark: {self.message} [{self.stage}]"
        return f"{self.span.place}: remark: {self.message} [{self.stage}]\n{self.span.render()}"


@dataclass(slots=True)
class Remarks:
    """Collects remarks in order; one that is made again says nothing new."""

    items: dict[Remark, None] = field(default_factory=dict[Remark, None])

    def add(
        self, kind: RemarkKind, stage: str, message: str, span: Span | None = None, prediction: Prediction | None = None
    ) -> None:
        """Note a decision."""
        self.items.setdefault(Remark(kind, stage, message, span, prediction))

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.items)
