"""Code that finds the best of several versions for the processor that a program runs on.

A version needs bits in words that the system reports, such as those of the auxiliary vector, and some versions a length
of scalable vectors:

    getauxval(AT_HWCAP), ...: the words, each read once
    the last version all of whose bits are set; with scalable vectors, only if they are as long as it expects

Which bits a feature has, and where the words are from, is the architecture's data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.diagnostics import UsageError
from tlx.ir.types import I32, I64
from tlx.ir.values import Value, const_int

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.target.target import Target

HWCAP = 16
HWCAP2 = 26
"""The entries of the auxiliary vector that describe the processor; Linux, include/uapi/linux/auxvec.h."""

FeatureBit = tuple[int, int]
"""A word, such as `HWCAP`, and the number of a bit in it."""

WordReader = Callable[["Builder", int], Value]
"""Emits code that reads a word: (builder, word) -> i64."""

LengthCondition = Callable[["Builder", "Target"], Value]
"""Emits code that compares the length of scalable vectors with that of a version: (builder, version) -> i1."""


def auxiliary_word(b: Builder, word: int) -> Value:
    """A word of the auxiliary vector, by the C library of a 64-bit machine."""
    return b.call_named("getauxval", I64, [const_int(I64, word)], "words", "nounwind").value


@dataclass(frozen=True, slots=True)
class FeatureDetector:
    """Detects versions by bits; it is what `Detection.emit` calls.

    Attributes:
        bits: The bit of each feature that programs can detect, by LLVM's name.
        read_word: Reads a word.
        implied: Features that all machines of the targets have, or that say nothing about them.
        has_length: Whether a version depends on the length of scalable vectors.
        fits_length: Whether the machine's vectors have the length of a version that depends on it.
    """

    bits: Mapping[str, FeatureBit]
    read_word: WordReader = auxiliary_word
    implied: frozenset[str] = frozenset()
    has_length: Callable[[Target], bool] | None = None
    fits_length: LengthCondition | None = None

    def __call__(self, b: Builder, versions: Sequence[Target], *, request_permission: bool) -> Value:
        """Emit the code; see `Detection.emit`.

        Raises:
            UsageError: A version has a feature that a program cannot detect.
        """
        del request_permission
        masks = [self._masks(version) for version in versions]
        words = {word: self.read_word(b, word) for word in sorted({word for mask in masks[1:] for word in mask})}
        level: Value = const_int(I32, 1)
        for number, (version, mask) in enumerate(zip(versions[1:], masks[1:], strict=True), 2):
            supported: Value = const_int(I32, 1)
            for word, bits in mask.items():
                wanted = const_int(I64, bits - (1 << 64) if bits >> 63 else bits)
                has = b.icmp("eq", b.binary("and", words[word], wanted), wanted)
                supported = b.binary("and", supported, b.cast("zext", has, I32))
            level = self._selected(b, version, b.icmp("ne", supported, 0), number, level)
        return level

    def _selected(self, b: Builder, version: Target, supported: Value, number: int, level: Value) -> Value:
        """`number` if the machine supports a version, else `level`."""
        if self.has_length is None or self.fits_length is None or not self.has_length(version):
            return b.select(supported, const_int(I32, number), level)
        head = b.block
        query = b.new_block("length")
        rest = b.new_block("rest", query)
        b.branch_if(supported, query, rest)
        b.at_end(query)
        longer = b.select(self.fits_length(b, version), const_int(I32, number), level)
        b.branch(rest)
        b.at_end(rest)
        return b.phi(I32, [(level, head), (longer, query)], "level")

    def _masks(self, version: Target) -> dict[int, int]:
        """The bits that a version needs, by word."""
        masks: dict[int, int] = {}
        for feature in version.features:
            if feature[0] == "-" or feature[1:] in self.implied:
                continue
            if feature[1:] not in self.bits:
                raise UsageError(
                    f"feature '{feature[1:]}': a program with versions for several targets cannot detect it at run "
                    "time; lower for one target, or without the feature"
                )
            word, bit = self.bits[feature[1:]]
            masks[word] = masks.get(word, 0) | 1 << bit
        return masks
