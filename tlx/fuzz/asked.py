"""What a lowering is asked for besides its target, as on a command line: processor, features, widths, knobs.

    --mcpu=alderlake --mattr=+avxvnniint8 --knobs=tile=4x16,kc=8,pack_b=true

Knobs that do not fit a product are left out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from tlx.knobs import NO_KNOBS, Knobs, Origin, Question, parse_knobs
from tlx.pipeline import Options
from tlx.target import find

_TYPES: Final = re.compile(r"matmul \S+ (\w+)(?: (\w+))?")
_DEFINE: Final = re.compile(r"(?m)^(define .*?)( \{)$")
_ORIGIN: Final = Origin("from the fuzzer", binding=False)


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    Attributes:
        cpu: `--mcpu`.
        attrs: `--mattr`.
        vector_bits: `--vector-bits`, 0 for what the target says.
        functions: Features that the program's own functions are compiled for, `+a,+b`; empty for none.
        knobs: `--knobs`, for products on vectors.
        matrix_knobs: Those for products that a matrix unit multiplies.
        weight_bytes: Bytes of panels up to which a constant B is packed at compile time; None for the default.
    """

    cpu: str = ""
    attrs: tuple[str, ...] = ()
    vector_bits: int = 0
    functions: str = ""
    knobs: str = ""
    matrix_knobs: str = ""
    weight_bytes: int | None = None

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Asked:
        """What `dataclasses.asdict` made of it."""
        asked = cls(**value)
        return replace(asked, attrs=tuple(asked.attrs))

    @property
    def has_machine(self) -> bool:
        """Whether it tells about the machine."""
        return bool(self.cpu or self.attrs or self.vector_bits or self.functions)

    def options(self, options: Options) -> Options:
        """Options that ask for it."""
        weights = options.weight_bytes if self.weight_bytes is None else self.weight_bytes
        return replace(
            options,
            cpu=self.cpu,
            attrs=self.attrs,
            vector_bits=self.vector_bits,
            knobs=self._knobs,
            weight_bytes=weights,
        )

    def compiled_for(self, text: str) -> str:
        """A module with functions that are compiled for these features."""
        return _DEFINE.sub(rf'\1 "target-features"="{self.functions}"\2', text) if self.functions else text

    def simpler(self) -> Iterator[Asked]:
        """With less asked for: nothing at all first."""
        plain = Asked()
        for names in ([f.name for f in fields(self)], *([f.name] for f in fields(self))):
            less = replace(self, **{name: getattr(plain, name) for name in names})
            if less != self:
                yield less
        yield from (replace(self, attrs=less) for less in _without_one(self.attrs))
        for name in ("knobs", "matrix_knobs", "functions"):
            yield from (
                replace(self, **{name: ",".join(less)}) for less in _without_one(getattr(self, name).split(","))
            )

    def __str__(self) -> str:
        """As a command line of `tlx-lower` has it, with the knobs of a matrix unit's products in brackets."""
        words = {
            "--mcpu": self.cpu,
            "--mattr": ",".join(self.attrs),
            "--vector-bits": str(self.vector_bits or ""),
            "--weight-bytes": "" if self.weight_bytes is None else str(self.weight_bytes),
            "--knobs": self.knobs + (f" (on a matrix unit: {self.matrix_knobs})" if self.matrix_knobs else ""),
        }
        return " ".join(f"{name}={value}" for name, value in words.items() if value)

    def _knobs(self, question: Question) -> Knobs:
        text = self.matrix_knobs if _is_for_matrix_unit(question) else self.knobs
        return parse_knobs(text, _ORIGIN) if text else NO_KNOBS


def _without_one(items: Sequence[str]) -> list[tuple[str, ...]]:
    """All but one of several items."""
    return [(*items[:i], *items[i + 1 :]) for i in range(len(items))] if len(items) > 1 else []


def _is_for_matrix_unit(question: Question) -> bool:
    """Whether the target's matrix unit multiplies such elements."""
    target = find(question.target.partition(".")[0])  # a version is called after its target and its features
    types = _TYPES.match(question.text)
    if target.matrix is None or types is None:
        return False
    lhs, rhs = types[1], types[2] or types[1]
    have = {feature[1:] for feature in question.features}
    return any((dot.lhs[0], dot.rhs[0]) == (lhs, rhs) and dot.feature in have for dot in target.matrix.dots)
