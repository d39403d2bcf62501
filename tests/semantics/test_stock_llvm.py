"""LLVM's own optimiser may run over tensor programs before they are lowered: they mean the same.

Among what it does are hoisting out of loops, folding of phis, and loops whose token is used behind them.
"""

from __future__ import annotations

import pytest

from tests.semantics.harness import RUN_ONLY, Job, check
from tests.tools import require

OPT = "opt-19"
JOBS = [
    Job("loops", "avx2", 16, 0, optimise=OPT),
    Job("small", "generic", 12, 1, optimise=OPT),
    Job("large", "avx2", 3, 2, (RUN_ONLY,), OPT),
]


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_optimised_before_lowering(job: Job) -> None:
    require(OPT)
    check(job)
