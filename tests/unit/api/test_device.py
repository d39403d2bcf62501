"""Which arrays are in the memory of a device."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.api.device.arrays import is_on_device


class _Tensor:
    """A tensor that says where it is as PyTorch's do: 2 is a GPU's memory, 3 the host's, pinned for copies to a GPU."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


@pytest.mark.parametrize(("kind", "expected"), [(1, False), (2, True), (3, False), (10, True), (11, False)])
def test_pinned_memory_is_the_hosts(kind: int, expected: bool) -> None:
    assert is_on_device(_Tensor(kind)) is expected


def test_arrays_of_numpy_are_not_on_a_device() -> None:
    assert not is_on_device(np.zeros(4))
