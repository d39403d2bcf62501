"""What follows semantic versioning: the Python API, the spelling of the IR and the commands, as listed in a file.

    python -m tests.architecture.test_public_names      writes the file anew

A line that changes or disappears is a change that breaks programs.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import click

import tlx
from tlx.cli.group import group
from tlx.intrinsics import INTRINSICS

_FILE: Final = Path(__file__).with_name("public_names.txt")


def public_names() -> list[str]:
    """The lines of the file."""
    return sorted({*_python(), *_intrinsics(), *_commands()})


def _python() -> Iterator[str]:
    for name in dir(tlx):
        value: Any = getattr(tlx, name)
        if not getattr(value, "__module__", "").startswith("tlx."):
            continue
        yield f"tlx.{name}{_parameters(value)}"
        members = [member for member in dir(value) if not member.startswith("_")] if isinstance(value, type) else []
        for member in members:
            yield f"tlx.{name}.{member}{_parameters(inspect.getattr_static(cast('type', value), member))}"


def _parameters(value: object) -> str:
    """The names of parameters, those with defaults followed by `=`."""
    value = getattr(value, "__func__", value)
    if not callable(value):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    spelled = [f"{p}".partition(":")[0].partition("=")[0].strip() for p in parameters]
    has_default = [p.default is not inspect.Parameter.empty for p in parameters]
    return f"({', '.join(f'{name}=' if default else name for name, default in zip(spelled, has_default, strict=True))})"


def _intrinsics() -> Iterator[str]:
    for row in INTRINSICS:
        for form in row.forms:
            operands = ", ".join(operand.name + ("..." if operand.repeated else "") for operand in form)
            yield f"@{row.full_name}({operands}) -> {row.result}"
        yield from (f"@{row.full_name} is also {alias}" for alias in row.aliases)


def _commands() -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"$ tlx {name}"
        for parameter in command.params if command is not None else ():
            if isinstance(parameter, click.Option):
                yield from (f"$ tlx {name} {option}" for option in parameter.opts)


def test_public_names_stay() -> None:
    listed = _FILE.read_text(encoding="utf-8").splitlines()
    assert listed == public_names(), "write the file anew if this is meant, and say it in changelog.d"


def test_public_names_of_python_are_on_their_page() -> None:
    page = (Path(__file__).parents[2] / "docs/front_ends/python_reference.rst").read_text(encoding="utf-8")
    names = {line.removeprefix("tlx.").partition("(")[0] for line in public_names() if line.startswith("tlx.")}
    assert not {name for name in names if "." not in name and name not in page}


if __name__ == "__main__":
    _FILE.write_text("".join(f"{line}\n" for line in public_names()), encoding="utf-8")
