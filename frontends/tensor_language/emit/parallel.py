"""`parallel`: the subgroups of a work-group, one after the other, with a lane for each work-item.

    parallel { ... }     ->     for s in 0 ... number of subgroups: the body, with all work-items active

Where a body with several subgroups has barriers, the loop over the subgroups is split there: see `barriers`.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.collective import Parallel
from tlx.frontends.tensor_language.ast.mixed import Barrier
from tlx.frontends.tensor_language.emit.barriers import Fission
from tlx.frontends.tensor_language.emit.divergence import first_barrier
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.subgroup_loop import each_subgroup, subgroup_count


def parallel(e: Emitter, i: Parallel) -> None:
    """`parallel { ... }`."""
    if subgroup_count(e) > 1 and first_barrier(i) is not None:
        Fission(e, i.body).run()
        return
    with each_subgroup(e):
        e.run(i.body)


def barrier(_e: Emitter, _i: Barrier) -> None:
    """`barrier[.global][.local]`, where one thread runs all that it waits for: nothing to wait for."""


RULES: Final = {Parallel: parallel, Barrier: barrier}
