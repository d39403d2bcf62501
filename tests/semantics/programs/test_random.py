"""Random programs mean the same at every stage, and as machine code, on every target.

`TLX_SEED=1000 TLX_PROGRAMS=500` runs other, or more, programs.
"""

from __future__ import annotations

import pytest

from tests.semantics.programs.harness import EMULATED, RUN_ONLY, Job, check
from tests.support.tools import quick, require_processor

VECTORS = ("generic", "avx2", "avx512")
JOBS = [
    *(Job("small", target, 5) for target in VECTORS),
    *(Job("large", target, 2, 0, (RUN_ONLY,)) for target in VECTORS),
    *(Job("moves", target, 3, 0, (RUN_ONLY,)) for target in VECTORS),
    *(Job("shapes", target, 2, 0, (RUN_ONLY,)) for target in VECTORS),
]
LONG_JOBS = [
    *(Job("small", target, 10, part) for part, target in enumerate(VECTORS, 1)),
    *(Job("large", target, 3, part, (RUN_ONLY,)) for part, target in enumerate(VECTORS, 1)),
    *(Job("moves", target, 6, part, (RUN_ONLY,)) for part, target in enumerate(VECTORS, 1)),
    *(Job("shapes", target, 4, part, (RUN_ONLY,)) for part, target in enumerate(VECTORS, 1)),
]
EMULATED_JOBS = [Job("tiles", "amx", 3, 0, (EMULATED,)), Job("small", "amx", 4, 0, (EMULATED,))]
LONG_EMULATED_JOBS = [
    *(Job("tiles", "amx", 3, part, (EMULATED,)) for part in range(1, 4)),
    Job("small", "amx", 4, 1, (EMULATED,)),
]


@pytest.mark.parametrize("job", quick([*JOBS, *LONG_JOBS], len(JOBS)), ids=str)
def test_vector_targets(job: Job) -> None:
    require_processor(job.target)
    check(job)


@pytest.mark.parametrize("job", quick([*EMULATED_JOBS, *LONG_EMULATED_JOBS], len(EMULATED_JOBS)), ids=str)
def test_emulated_amx(job: Job) -> None:
    report = check(job)
    assert report.tiled > 0
