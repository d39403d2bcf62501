"""Peers of `tlx bench`: found or left out, and clang's loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools import require
from tests.unit.bench.expected import expected, nothing
from tlx.bench.peers import base, clang, libxsmm
from tlx.bench.peers.base import LibraryPaths
from tlx.bench.workloads import elementwise, products
from tlx.diagnostics import UsageError
from tlx.tuning.workload import Workload


def test_peers_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.util.find_library", nothing)
    (tmp_path / "libxsmm.so").write_text("no library")
    peers, absent = base.find_peers(["libxsmm", "openblas", "mkl", "onednn"], LibraryPaths((tmp_path,)))
    assert peers == []
    assert absent["libxsmm"] == "no libxsmm*.so*"
    assert set(absent) == {"libxsmm", "openblas", "mkl", "onednn"}
    with pytest.raises(UsageError, match="unknown peer 'cublas'; choose from libxsmm"):
        base.find_peers(["cublas"], LibraryPaths(()))


@pytest.mark.parametrize("m", [1, 8, 49, 64, 196, 97])
def test_libxsmms_row_blocks_divide_the_rows(m: int) -> None:
    blocks = libxsmm.row_blocks(m)
    assert blocks
    assert all(m % block == 0 and block <= 64 for block in blocks)
    assert blocks[0] == m or m > 64


def test_clang_s_loops_can_be_built_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("clang-19")
    work = products.product("f32", 4, 5, 6)
    reduction = elementwise.of_rows("rowsum", "bf16", 4, 5)
    assert clang.build([work, reduction, products.product("bf16", 4, 5, 6)], tmp_path, "x86-64") == 3
    monkeypatch.setattr("shutil.which", nothing)
    peers, absent = base.find_peers(["clang", "matrix"], LibraryPaths((tmp_path,)))
    assert not absent
    assert peers[0].version.endswith("(built earlier)")
    arrays = work.arrays()
    for peer in peers:
        (attempt,) = peer.attempts(work, arrays)
        arrays["c"][...] = 0
        attempt.repeat(1)
        work.check(arrays["c"], expected(work, arrays), peer.name)
        assert not list(peer.attempts(products.product("f32", 4, 5, 7), arrays))


@pytest.mark.parametrize("types", ["f32", "bf16"])
@pytest.mark.parametrize("function", ["add", "muladd", "rowsum", "rowmax"])
def test_clang_s_loops_on_elements_and_rows(function: str, types: str) -> None:
    """Of 203 elements and of 72 columns, which are no multiples of what is done at once."""
    require("clang-19")
    rows = function.startswith("row")
    work = elementwise.of_rows(function, types, 5, 72) if rows else elementwise.pointwise(function, types, 203)
    (attempt,) = clang.load_loops(LibraryPaths(())).attempts(work, arrays := work.arrays())
    attempt.repeat(1)
    work.check(arrays["y"], expected(work, arrays), "clang")


@pytest.mark.parametrize(
    "work", [elementwise.pointwise("tanh", "f32", 16), elementwise.of_rows("softmax", "bf16", 2, 16)]
)
def test_clang_has_no_loops_for_functions(work: Workload, tmp_path: Path) -> None:
    require("clang-19")
    assert clang.build([work], tmp_path, "x86-64-v4") == 0


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_PEERS", "/a:/b")
    assert LibraryPaths.below(None).folders == (Path("/a"), Path("/b"))
    assert LibraryPaths.below("/c").folders == (Path("/c"),)
