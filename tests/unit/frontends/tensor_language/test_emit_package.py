"""The files of the emitter: the head of the package lists them, and each class of instruction has one rule."""

from __future__ import annotations

import pkgutil
import re

from tlx.frontends.tensor_language import emit
from tlx.frontends.tensor_language.operations import OPERATIONS, control
from tlx.frontends.tensor_language.operations.core import rules_of

_FILES = sorted(info.name for info in pkgutil.iter_modules(emit.__path__))


def test_package_lists_its_files() -> None:
    listed = re.findall(r"(?m)^ {4,}([a-z_]+) {2,}\S", emit.__doc__ or "")
    assert sorted(listed) == _FILES


def test_every_instruction_has_one_rule() -> None:
    written = {entry.node for entry in OPERATIONS.values()}
    written -= {control.Yield}  # which ends a region, and is read by what has the region
    assert rules_of(emit.__name__).keys() == written
