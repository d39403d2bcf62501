"""Remarks of the lowering, by which tests check its decisions."""

from __future__ import annotations

from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks


def remarks_of(text: str, target: str = "avx512") -> str:
    """All remarks about a program, a line each."""
    remarks = Remarks()
    lower_text(text, target=target, options=Options(remarks=remarks))
    return "\n".join(remark.message for remark in remarks)
