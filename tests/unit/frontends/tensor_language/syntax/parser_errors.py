"""Errors of a text in the tensor language."""

from __future__ import annotations

import pytest

from tlx.frontends.tensor_language import parse
from tlx.frontends.tensor_language.errors import ProgramError


def errors_of(text: str) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        parse(text, "k.tl")
    return caught.value
