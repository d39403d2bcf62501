"""Front ends by their short names: `tlx.matrix` and `import tlx.matrix` are `tlx.frontends.matrix`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, reload

import pytest

import tlx
from tests.support.tools import HANG_S


@pytest.mark.parametrize("name", ["matrix", "c_header", "tensor_language"])
def test_a_front_end_is_one_module_by_two_names(name: str) -> None:
    module = import_module(f"tlx.{name}")
    assert module is import_module(f"tlx.frontends.{name}")
    assert module is getattr(tlx, name)
    assert module.__spec__ is not None
    assert module.__spec__.name == f"tlx.frontends.{name}"
    assert reload(module) is module


def test_the_short_name_may_be_the_first_that_is_imported() -> None:
    script = "from tlx.matrix import RAISE; import tlx.frontends.matrix as m; assert m.RAISE is RAISE"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=HANG_S).returncode == 0


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tlx\.nothing'"):
        import_module("tlx.nothing")
