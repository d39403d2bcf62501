"""Loops are unrolled as their attribute says."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tlx.llvm.codegen import emit_code

TRIPS: Final = 3


@pytest.mark.parametrize(("attribute", "copies"), [("true", TRIPS), ("false", 1), (TRIPS, TRIPS), (1, 1)])
@pytest.mark.parametrize("region", ["collective", "uniform", "varying"])
def test_unrolling(attribute: str, copies: int, region: str) -> None:
    """How many atomic loads, which LLVM leaves alone, the code has where all work-items make the same rounds."""
    opening, lane = ("", "%zero") if region == "collective" else ("parallel { %l = subgroup_local_id : i32", "%l")
    stop = "%last" if region == "varying" else "%three"
    text = f"""
func @run(%X: memref<f64x32>, %n: i32) {{
  %zero = constant 0 : i32
  %three = constant {TRIPS} : i32
  %k0 = constant 0 : index
  {opening}
    %last = add {lane}, %three : i32
    for %k={"%l" if region == "varying" else "%zero"},{stop} {{
      %i = cast %k : index
      %o = atomic_load %X[%k0] : f64
      %y = mul %o, %o : f64
      store %y, %X[%i]
    }} attributes {{unroll={attribute}}}
  {"" if region == "collective" else "}"}
}}"""
    kernels = tl.compile(text)
    optimised = emit_code(kernels.lowered, "ll", 2).decode()
    group = optimised.split("@run.group(")[1].split("\n}")[0]
    if region != "varying":
        assert group.count("load atomic") == copies
    assert kernels.lowered.count(", !llvm.loop !") == 1
    x = np.zeros(32)
    kernels.run(x, 3)
    assert not x.any()
