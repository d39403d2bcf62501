"""The environment that keeps other libraries to the instructions of a target.

The libraries read it when they are loaded, so a process measures one target. Limits are upper bounds: a library without
kernels for them uses older instructions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

# The first line whose feature the target has: libxsmm, oneDNN, MKL, PyTorch.
_VARIABLES: Final = ("LIBXSMM_TARGET", "ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY")
_LIMITS: Final = {
    "amx-tile": ("spr", "AVX512_CORE_AMX", "AVX512_E4", "avx512"),
    "avx512bf16": ("cpx", "AVX512_CORE_BF16", "AVX512_E3", "avx512"),
    "avx512f": ("clx", "AVX512_CORE_VNNI", "AVX512_E1", "avx512"),
    "avxneconvert": ("srf", "AVX2_VNNI_2", "AVX2_E1", "avx2"),
    "avx2": ("hsw", "AVX2", "AVX2", "avx2"),
}


def library_limits(features: Collection[str]) -> dict[str, str]:
    """Environment variables for a target with these features, as `+avx2`; none for other machines."""
    for feature, values in _LIMITS.items():
        if f"+{feature}" in features:
            return dict(zip(_VARIABLES, values, strict=True))
    return {}
