"""Masked stores of narrow elements with a single lane write that lane only."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES, compiled, random, same


@pytest.mark.parametrize("type_", ["i8", "i16", "bf16", "f16", "i32"])
def test_one_lane_that_llvm_may_know(type_: str) -> None:
    """The last index of 17, one work-item by its number, and one row of a matrix."""
    text = f"""
    func @narrow(%A: memref<f32x32>, %B: memref<{type_}x32>, %C: memref<{type_}x32>, %M: memref<{type_}x17x8>,
                 %N: memref<{type_}x17x8>) {{
        %c0 = constant 0 : index
        %c16 = constant 16 : index
        %c17 = constant 17 : index
        foreach (%i)=(%c0),(%c17) {{
            %a = load %A[%i] : f32
            %b = cast %a : {type_}
            store %b, %B[%i]
        }}
        parallel {{
            %lane = subgroup_local_id : i32
            %three = constant 3 : i32
            %i = cast %lane : index
            %a = load %A[%i] : f32
            %b = cast %a : {type_}
            %chosen = equal %lane, %three : bool
            if %chosen {{
                store %b, %C[%i]
            }}
            %m = cooperative_matrix_load %M[%c0,%c0] : coopmatrix<{type_}x16x8,matrix_acc>
            cooperative_matrix_store.rows_checked %m, %N[%c16,%c0]
        }}
    }}"""
    a = np.arange(1, 33, dtype=np.float32)
    b, c, m, n = (random(type_, shape, seed) for seed, shape in enumerate([(32,), (32,), (17, 8), (17, 8)]))
    expected_b, expected_c, expected_n = b.copy(), c.copy(), n.copy()
    expected_b[:17] = a[:17].astype(DTYPES[type_])
    expected_c[3] = 4
    expected_n[16] = m[0]
    compiled(text).narrow(a, b, c, m, n)
    same(b, expected_b)
    same(c, expected_c)
    same(n, expected_n)
