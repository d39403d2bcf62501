"""OpenMP's functions, on a team that `tlx.evaluate.team` runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.evaluate.site import CallSite, Factory, Run, Table
from tlx.evaluate.team import Team
from tlx.ir.threads import FORK


def _fork(site: CallSite) -> Run:
    context = site.context

    def run(function: int, data: int, wanted: int, _flags: int) -> None:
        name = context.symbols.function_at(function)
        context.team.fork(lambda: context.call(name, [data]), wanted)

    return run


def _of_team(fact: Callable[[Team], int]) -> Factory:
    def make(site: CallSite) -> Run:
        return lambda: fact(site.context.team)

    return make


TEAMS: Final[Table] = {
    FORK: _fork,
    "omp_get_max_threads": _of_team(lambda team: team.most),
    "omp_get_num_threads": _of_team(lambda team: team.size),
    "omp_get_thread_num": _of_team(lambda team: team.number),
    "omp_in_parallel": _of_team(lambda team: int(team.size > 1)),
}
