"""The options of the lowering: command lines and `tlx.compile` take the same values and give the same errors."""

from __future__ import annotations

from typing import Any

import click
import pytest

import tlx
from tlx.cli.lower import lower
from tlx.cli.options import lowering_options
from tlx.cli.program import usage_message
from tlx.diagnostics import TlxError, UsageError
from tlx.lower.options import SETTINGS, Options

PLAIN = "define void @f() {\n  ret void\n}\n"


@click.command()
@lowering_options
def show(options: Options) -> Options:
    return options


def options_of(*arguments: str) -> Options:
    return show.main(list(arguments), standalone_mode=False)


def message_of(*arguments: str) -> str:
    try:
        options_of(*arguments)
    except click.ClickException as error:
        return usage_message(error, "show")
    except TlxError as error:
        return error.message
    return ""


def test_knobs_in_the_spelling_of_the_command_line_give_an_error() -> None:
    with pytest.raises(UsageError, match=r"invalid value for 'knobs': .*parse_knobs\('kc=512'\).*, got 'kc=256'"):
        tlx.compile(PLAIN, knobs="kc=256")


def test_every_option_is_one_of_the_command_line() -> None:
    flags = {flag for parameter in lower.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert flags >= {flag for setting, _ in SETTINGS.values() for flag in setting.flag.split("/")}


def test_a_command_line_without_options_has_the_defaults() -> None:
    options = options_of()
    assert {name: getattr(options, name) for name in SETTINGS} == {name: d for name, (_, d) in SETTINGS.items()}
    assert options.print_after is None


def test_command_lines_and_python_agree() -> None:
    line = "--mcpu=haswell --mattr=+avxvnni,-f16c --mattr=+fma --vector-bits=256 --mtriple=x86_64-linux-gnu"
    more = "--stop-after=to-2d --no-verify-each --emulate-matrix --threads=openmp --thread-cycles=0 --weight-bytes=7"
    values: dict[str, Any] = {
        "cpu": "haswell",
        "features": ("+avxvnni", "-f16c", "+fma"),
        "vector_bits": 256,
        "triple": "x86_64-linux-gnu",
        "stop_after": "to-2d",
        "verify_each": False,
        "emulate_matrix": True,
        "threads": "openmp",
        "thread_cycles": 0,
        "weight_bytes": 7,
    }
    options, expected = options_of(*line.split(), *more.split()), Options().updated(**values)
    assert {name: getattr(options, name) for name in SETTINGS} == {name: getattr(expected, name) for name in SETTINGS}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threads", "opnmp"),
        ("stop_after", "to2d"),
        ("start_after", "legalize"),
        ("vector_bits", 64),
        ("thread_cycles", -1),
        ("weight_bytes", -5),
    ],
)
def test_wrong_values_are_refused_in_the_same_words(name: str, value: Any) -> None:
    flag = SETTINGS[name][0].flag
    with pytest.raises(UsageError) as error:
        tlx.compile(PLAIN, **{name: value})
    assert error.value.message.startswith(f"invalid value for '{name}': ")
    assert message_of(f"{flag}={value}") == error.value.message.replace(name, flag, 1)


def test_values_of_another_type_are_refused() -> None:
    for values in ({"features": "+fma"}, {"threads": 4}, {"thread_cycles": True}, {"emulate_matrix": "yes"}):
        with pytest.raises(UsageError, match=f"invalid value for '{next(iter(values))}': "):
            Options().updated(**values)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown option 'thread'; did you mean 'threads'"):
        tlx.compile(PLAIN, thread="openmp")
