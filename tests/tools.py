"""Programs from outside that tests run."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def require(tool: str) -> str:
    """The path of a program; without it the test is skipped, or fails where `CI` is set.

    Args:
        tool: Its name.
    """
    path = shutil.which(tool)
    if path is not None:
        return path
    return missing(tool)


def missing(tool: str) -> NoReturn:
    """Skip a test for want of something that it needs; where `CI` is set, it fails."""
    message = f"{tool} is not installed"
    if os.environ.get("CI"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
