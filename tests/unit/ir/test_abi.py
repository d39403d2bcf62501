"""Attributes of parameters and results."""

import pytest

from tlx.ir.abi import parse_attributes


@pytest.mark.parametrize("words", ["", "noalias", " noalias readonly  nocapture", "internal fastcc", "zeroext"])
def test_words_are_read_alike_alone_and_next_to_a_number(words: str) -> None:
    *alike, align = parse_attributes(f"{words} align 8")
    assert parse_attributes(words) == tuple(alike)
    assert (align.text, align.number) == ("align 8", 8)
