"""Tests of the tensor language that do not hold on a GPU, each with the fact about the machine or about CPUs behind it.

The plugins `on_emulator` and `on_device` skip them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pytest

_ORDER: Final = "work-items run at once: the order of their atomic updates and stores to one element is open"
_WARP: Final = "a subgroup is a part of a warp, which has 32 threads"
_SHARED: Final = "local memory is shared memory, of which a block has 163 KiB"
_CODE: Final = "the test reads the code of a CPU"

DIFFERENCES: Final = {
    "matrix/test_memory.py::test_overlapping_lines_are_stored_in_order": _ORDER,
    "spmd/test_atomics.py::test_updates[": _ORDER,
    "spmd/test_atomics.py::test_updates_by_some_work_items_of_subgroups_of_any_size[64]": _WARP,
    "spmd/test_atomics.py::test_updates_by_some_work_items_of_subgroups_of_any_size[128]": _WARP,
    "spmd/test_values.py::test_the_last_of_several_stores_to_one_element_wins": _ORDER,
    "test_control.py::test_local_memory_lives_as_long_as_its_region": _SHARED,
    "test_control.py::test_nested_regions_of_all_kinds": _SHARED,
    "spmd/test_control.py::test_strided_loop_of_a_subgroup": _CODE,
    "spmd/test_strided.py::test_no_masks_where_all_run": _CODE,
    "test_unroll.py::test_unrolling": _CODE,
}


def skip_differences(items: Iterable[pytest.Item]) -> None:
    """Skip the tests that do not hold on a GPU."""
    for item in items:
        for test, reason in DIFFERENCES.items():
            if f"tensor_language/{test}" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
