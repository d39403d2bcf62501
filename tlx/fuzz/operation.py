"""What an operation of a dataflow function is."""

from __future__ import annotations

from collections.abc import Callable

from tlx.fuzz.dataflow import Dataflow
from tlx.fuzz.flows import Flow

Operation = Callable[[Dataflow], Flow | None]
