"""Remarks: what the lowering decided and why, for the user who asks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tlx.diagnostics import Span

Kind = Literal["applied", "missed", "analysis"]


@dataclass(frozen=True, slots=True)
class Remark:
    """One decision.

    Attributes:
        kind: `applied` (done), `missed` (not done, and why), `analysis` (a fact, such as a temporary's size).
        stage: Name of the stage that says so.
        message: What was decided, in a sentence.
        span: The instruction of the user's file it is about.
    """

    kind: Kind
    stage: str
    message: str
    span: Span | None = None

    def render(self) -> str:
        """`file:line:col: remark: message [stage]`, with source line and caret."""
        if self.span is None:
            return f"remark: {self.message} [{self.stage}]"
        return f"{self.span.place}: remark: {self.message} [{self.stage}]\n{self.span.render()}"


@dataclass(slots=True)
class Remarks:
    """Collects remarks in order; one that is made again says nothing new."""

    items: dict[Remark, None] = field(default_factory=dict[Remark, None])

    def add(self, kind: Kind, stage: str, message: str, span: Span | None = None) -> None:
        """Note a decision."""
        self.items[Remark(kind, stage, message, span)] = None

    def __iter__(self) -> Iterator[Remark]:
        return iter(self.items)
