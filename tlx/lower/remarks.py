"""Remarks: decisions of the lowering, with their reasons, for `--remarks`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from tlx.diagnostics import Span

RemarkKind = Literal["applied", "missed", "analysis"]
ArithmeticUnit = Literal["fma", "dot", "matrix"]
"""What multiplies: multiply-adds, dot products of vectors, or a matrix unit."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected speed of a product.

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
        stage: Name of the stage that reports it.
        message: The decision, as text.
        span: The instruction in the user's file that it concerns.
        prediction: The expected speed of the code; None if unknown.
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
    """Remarks in the order of their first appearance, without duplicates."""

    items: dict[Remark, None] = field(default_factory=dict[Remark, None])

    def add(
        self, kind: RemarkKind, stage: str, message: str, span: Span | None = None, prediction: Prediction | None = None
    ) -> None:
        """Add a remark."""
        self.items.setdefault(Remark(kind, stage, message, span, prediction))

    def extend(self, remarks: Iterable[Remark]) -> None:
        """Add remarks."""
        for remark in remarks:
            self.items.setdefault(remark)

    def truncate(self, count: int) -> None:
        """Drop all but the first remarks."""
        self.items = dict.fromkeys(list(self.items)[:count])

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.items)
