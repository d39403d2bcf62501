"""A small kernel is inlined into the loops around its calls, unless that multiplies the code."""

from __future__ import annotations

import pytest

from tlx.ir.parser.module import parse
from tlx.lower.context import NEST_STAGE, STAGE_ATTRIBUTE
from tlx.lower.outlining import LegalizedKernel, inline_kernels


def _nests(count: int, size: int) -> str:
    """Nests that call a kernel of `size` instructions."""
    work = "".join(f"  %x{i} = load volatile float, ptr %p\n" for i in range(size - 1))
    kernel = f"define internal void @tlx.kernel(ptr %p) {{\n{work}  ret void\n}}\n"
    attribute = f'"{STAGE_ATTRIBUTE}"="{NEST_STAGE}"'
    return kernel + "".join(
        f"define internal void @tlx.nest.{i}(ptr %p) {attribute} {{\n  call void @tlx.kernel(ptr %p)\n  ret void\n}}\n"
        for i in range(count)
    )


@pytest.mark.parametrize(
    ("count", "size", "is_inlined"),
    [(1, 700, True), (2, 700, False), (2, 500, True), (8, 500, True), (20, 500, False), (20, 100, True)],
)
def test_kernels_are_inlined_in_few_places(count: int, size: int, *, is_inlined: bool) -> None:
    module = parse(_nests(count, size), "nests", lambda _: True)
    kernel = next(function for function in module.functions if function.name == "tlx.kernel")
    inline_kernels(module, {kernel.name: LegalizedKernel(kernel, frozenset())})
    assert (str(module).count("call void @tlx.kernel(") == 0) == is_inlined
    assert ("@tlx.kernel(" in str(module)) != is_inlined
