"""Tables of logarithms of floats: log_b m for m from 3/4 to 3/2 in 32 intervals of as many floats each.

    r = m c - 1,   log_b m = -log_b c + r p(r)         c near 1 / m, |r| < 1/32

c is 1 in the two intervals at 1, where the logarithm is r p(r) alone, whose relative error is small: 2^-27 by minimax
approximations, rounded afterwards. Intervals are in the order of the last five bits of m's upper bits, which tell them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.lower.legalize.math.polynomial import numbers

INTERVAL: Final = 18
"""Bits of a float below those that tell the interval."""
INVERSES: Final = numbers("""
    0x1p+0 0x1.e9131ap-1 0x1.dae608p-1 0x1.cd8568p-1 0x1.c0e07p-1 0x1.b4e81cp-1 0x1.a98ef6p-1 0x1.9ec8eap-1
    0x1.948b1p-1 0x1.8acb9p-1 0x1.818182p-1 0x1.78a4c8p-1 0x1.702e06p-1 0x1.681682p-1 0x1.605816p-1 0x1.58ed24p-1
    0x1.51d07ep+0 0x1.4afd6ap+0 0x1.446f86p+0 0x1.3e22ccp+0 0x1.381382p+0 0x1.323e34p+0 0x1.2c9fb4p+0 0x1.27350cp+0
    0x1.21fb78p+0 0x1.1cf06ap+0 0x1.181182p+0 0x1.135c82p+0 0x1.0ecf56p+0 0x1.0a681p+0 0x1.0624dep+0 0x1p+0
""")


@dataclass(frozen=True, slots=True)
class Table:
    """A base.

    Attributes:
        p: log_b (1 + r) / r.
        logarithms: -log_b c of each interval.
    """

    p: tuple[float, ...]
    logarithms: tuple[float, ...]


E: Final = Table(
    p=numbers("0x1p+0 -0x1.00002cp-1 0x1.555f4cp-2 -0x1.f3a48cp-3"),
    logarithms=numbers("""
        0x0p+0 0x1.77459cp-5 0x1.341d74p-4 0x1.a926d8p-4 0x1.0d77e8p-3 0x1.44d2b4p-3 0x1.7ab89p-3 0x1.af3c92p-3
        0x1.e27076p-3 0x1.0a325p-2 0x1.22941ep-2 0x1.3a64c6p-2 0x1.51aad8p-2 0x1.686c8p-2 0x1.7eaf84p-2 0x1.94793ep-2
        -0x1.1bf994p-2 -0x1.071386p-2 -0x1.e530eep-3 -0x1.bd0874p-3 -0x1.95a5b2p-3 -0x1.6f0124p-3 -0x1.4913d2p-3
        -0x1.23d716p-3 -0x1.fe8912p-4 -0x1.b6ac7cp-4 -0x1.700d3ep-4 -0x1.2aa058p-4 -0x1.ccb726p-5 -0x1.466adap-5
        -0x1.849286p-6 0x0p+0
    """),
)
TWO: Final = Table(
    p=numbers("0x1.715476p+0 -0x1.7154b6p-1 0x1.ec7efep-2 -0x1.686a84p-2"),
    logarithms=numbers("""
        0x0p+0 0x1.0eb392p-4 0x1.bc841cp-4 0x1.32aea2p-3 0x1.84c2bep-3 0x1.d49eep-3 0x1.11307ep-2 0x1.37124ap-2
        0x1.5c01a2p-2 0x1.800a5ap-2 0x1.a3375ep-2 0x1.c592fcp-2 0x1.e726aap-2 0x1.03fda8p-1 0x1.140cap-1
        0x1.23c41cp-1 -0x1.99b07p-2 -0x1.7b89fp-2 -0x1.5dfdcep-2 -0x1.410602p-2 -0x1.249cd6p-2 -0x1.08bcdep-2
        -0x1.dac224p-3 -0x1.a5095p-3 -0x1.704602p-3 -0x1.3c6faep-3 -0x1.097e42p-3 -0x1.aed3a6p-4 -0x1.4c56p-4
        -0x1.d6ebb6p-5 -0x1.184bb4p-5 0x0p+0
    """),
)
TEN: Final = Table(
    p=numbers("0x1.bcb7b2p-2 -0x1.bcb7fep-3 0x1.28831ep-3 -0x1.b1fbf4p-4"),
    logarithms=numbers("""
        0x0p+0 0x1.45f5p-6 0x1.0ba016p-5 0x1.714838p-5 0x1.d41d54p-5 0x1.1a2342p-4 0x1.48f3eep-4 0x1.76913ep-4
        0x1.a30a9cp-4 0x1.ce6e46p-4 0x1.f8c966p-4 0x1.11143p-3 0x1.254b4cp-3 0x1.390f66p-3 0x1.4c658p-3 0x1.5f5242p-3
        -0x1.ed50a2p-4 -0x1.c902a2p-4 -0x1.a56e82p-4 -0x1.828dp-4 -0x1.60573ap-4 -0x1.3ec6aap-4 -0x1.1dd542p-4
        -0x1.fafa72p-5 -0x1.bb7208p-5 -0x1.7d06f6p-5 -0x1.3faf88p-5 -0x1.03623p-5 -0x1.902c1ep-6 -0x1.1b85c4p-6
        -0x1.518278p-7 0x0p+0
    """),
)
