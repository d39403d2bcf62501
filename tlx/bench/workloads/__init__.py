"""The workloads: functions in LLVM IR on tensors in memory, with their expected results in numpy.

The table of `tlx bench` is that of `products`, `convolutions` and `elementwise`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tlx.bench.workloads.convolutions import convolution_workloads
from tlx.bench.workloads.elementwise import pointwise_workloads
from tlx.bench.workloads.products import batch_workloads, fused_workloads, gemm_workloads, layer_workloads
from tlx.diagnostics import UsageError
from tlx.tuning.workload import Workload


def all_workloads() -> Iterator[Workload]:
    """The whole table."""
    yield from batch_workloads()
    yield from convolution_workloads()
    yield from fused_workloads()
    yield from gemm_workloads()
    yield from layer_workloads()
    yield from pointwise_workloads()


def select_workloads(
    names: Sequence[str], types: Sequence[str], sizes: Sequence[str], variants: Sequence[str]
) -> list[Workload]:
    """The workloads of the given rows, types, sizes and variants; an empty list means all.

    Raises:
        UsageError: There is no such row, type or size.
    """
    return selected(all_workloads(), names, types, sizes, variants)


def selected(
    workloads: Iterable[Workload],
    names: Sequence[str],
    types: Sequence[str],
    sizes: Sequence[str],
    variants: Sequence[str],
) -> list[Workload]:
    """As `select_workloads`, of another table."""
    table = list(workloads)
    _check_known("row", names, (work.row for work in table))
    table = [work for work in table if not names or work.row in names]
    _check_known("type", types, (work.types for work in table))
    table = [work for work in table if not types or work.types in types]
    _check_known("size", sizes, (work.size for work in table))
    table = [work for work in table if not sizes or work.size in sizes]
    _check_known("variant", variants, (work.variant or "plain" for work in table))
    return [work for work in table if not variants or (work.variant or "plain") in variants]


def _check_known(what: str, names: Sequence[str], have: Iterable[str]) -> None:
    known = list(dict.fromkeys(have))
    for name in names:
        if name not in known:
            raise UsageError(f"unknown {what} '{name}'; choose from {', '.join(known)}")
