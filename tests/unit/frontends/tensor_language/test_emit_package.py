"""The files of the emitter: the head of the package lists them, and each class of instruction has one rule."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from typing import Any

from tlx.frontends.tensor_language import emit
from tlx.frontends.tensor_language.operations import OPERATIONS, control
from tlx.frontends.tensor_language.operations.core import tables_of

_FILES = sorted(info.name for info in pkgutil.iter_modules(emit.__path__))


def test_package_lists_its_files() -> None:
    listed = re.findall(r"(?m)^ {4,}([a-z_]+) {2,}\S", emit.__doc__ or "")
    assert sorted(listed) == _FILES


def test_every_instruction_has_one_rule() -> None:
    rules: Counter[type[Any]] = Counter()
    for table in tables_of(emit.__name__):
        rules.update(table.keys())
    classes = {entry.node for entry in OPERATIONS.values()}
    written = classes - {control.Yield}  # which ends a region, and is read by what has the region
    assert rules == Counter(written)
