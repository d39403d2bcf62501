"""Random programs mean the same at every stage, and as machine code, on every target.

`TLX_SEED=1000 TLX_PROGRAMS=500` runs other, or more, programs.
"""

from __future__ import annotations

import pytest

from tests.semantics.harness import EMULATED, RUN_ONLY, Job, check
from tlx.target.host import cpu_flags, missing_features
from tlx.target.lookup import find_target

VECTORS = ("generic", "avx2", "avx512")
JOBS = [
    *(Job("small", target, 20, part) for target in VECTORS for part in range(2)),
    *(Job("large", target, 5, part, (RUN_ONLY,)) for target in VECTORS for part in range(2)),
    *(Job("moves", target, 6, 0, (RUN_ONLY,)) for target in VECTORS),
    *(Job("shapes", target, 4, 0, (RUN_ONLY,)) for target in VECTORS),
]
EMULATED_JOBS = [
    *(Job("tiles", "amx", 8, part, (EMULATED,)) for part in range(3)),
    Job("small", "amx", 8, 0, (EMULATED,)),
]


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_vector_targets(job: Job) -> None:
    lacking = missing_features(find_target(job.target), cpu_flags())
    if lacking:
        pytest.skip(f"this processor has no {', '.join(lacking)}")
    check(job)


@pytest.mark.parametrize("job", EMULATED_JOBS, ids=str)
def test_emulated_amx(job: Job) -> None:
    report = check(job)
    assert report.tiled > 0
