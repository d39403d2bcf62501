"""Running a program with the conventions of LLVM's tools: arguments, error messages, exit status 0 or 1.

-target=amx            ->  --target=amx            one dash is enough, as for opt and llc
-o=x.ll                ->  -o x.ll
--remarks              ->  --remarks=<stderr>      an optional value needs '='

No error shows a traceback.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NoReturn

import click

from tlx.api import files
from tlx.diagnostics import TlxError, TlxWarning, did_you_mean, nearest

_QUOTED: Final = re.compile("'([^']*)'")
_NO_FOLDER: Final = "usable temporary directory"
"""What the module tempfile says where no folder of temporary files takes any."""
_NO_CHOICE: Final = re.compile("'([^']*)' is not one of (.*)", re.DOTALL)
_TOO_SMALL: Final = re.compile(r"is not in the range x>=(\S+)$")
_NOT_BETWEEN: Final = re.compile(r"is not in the range (\S+)<=x<=(\S+)$")


def run_program(command: click.Command, name: str) -> NoReturn:
    """Run a command with the arguments of this process, and end the process."""
    try:
        status = _status(command, name, sys.argv[1:])
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader closed the pipe
        files.abandon_standard_output()
        status = 1
    sys.exit(status)


def _status(command: click.Command, name: str, arguments: list[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("once", TlxWarning, append=True)  # the user's filters come first
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            result = command.main(respell(command, arguments), prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        _print_error(f"{name}: error: {usage_message(error, name)}")
    except (KeyboardInterrupt, click.Abort):
        _print_error(f"{name}: interrupted")
        return 130
    except BrokenPipeError:
        raise
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:  # noqa: BLE001 (the last resort: a user must never see a traceback)
        report(error, name)
    else:
        return result if isinstance(result, int) else 0
    return 1


def report(error: Exception, name: str) -> None:
    """Print an error that ends the program `name`."""
    if isinstance(error, TlxError):
        _print_error(render_error(error, name))
    elif isinstance(error, TlxWarning):  # PYTHONWARNINGS=error turns warnings into errors
        _print_error(error.render())
    elif isinstance(error, RecursionError):
        _print_error(f"{name}: error: the input is nested too deeply")
    elif isinstance(error, MemoryError):
        _print_error(f"{name}: error: out of memory")
    elif isinstance(error, FileNotFoundError) and _NO_FOLDER in str(error.strerror):
        _print_error(f"{name}: error: could not write a temporary file: {error.strerror}")
    elif isinstance(error, OSError) and error.errno in files.EXHAUSTED:
        place = f"'{error.filename}'" if error.filename else "a temporary file"
        if _is_of_printing(error):
            files.abandon_standard_output()
            place = "to standard output"
        _print_error(f"{name}: error: could not write {place}: {files.os_error_text(error)}")
    else:
        _internal(error, name)


def _is_of_printing(error: OSError) -> bool:
    """Whether an error comes from writing to standard output."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


def _show_warning(
    show_other: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    """Print a warning of TLX like LLVM's tools; show others like Python."""
    if isinstance(message, TlxWarning):
        _print_error(message.render())
    else:
        show_other(message, category, *place, **more)


def render_error(error: TlxError, name: str) -> str:
    """A diagnostic as the program `name` prints it."""
    if error.span is None and error.name is None:
        return f"{name}: {error.render()}"
    return error.render()


def usage_message(error: click.ClickException, name: str) -> str:
    """The message about invalid arguments, worded like LLVM's."""
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command_path if error.ctx else name
        message = f"unknown command line argument '{error.option_name}'; try '{command} --help'"
        if error.possibilities:
            message += f"\n{name}: did you mean '{min(error.possibilities)}'?"
        return message
    message = error.format_message().rstrip(".").replace(". Choose from:", "; choose from").replace("\n\t", " ")
    message = _NOT_BETWEEN.sub(r"is not between \1 and \2", _TOO_SMALL.sub(r"is less than \1", message))
    message = message.replace("is not a valid integer range", "is not an integer").replace(
        "is not a valid float range", "is not a number"
    )
    if match := _NO_CHOICE.search(message):
        message += did_you_mean(match[1], _QUOTED.findall(match[2]))
    return message[:1].lower() + message[1:]


def _internal(error: Exception, name: str) -> None:
    if os.environ.get("TLX_DEBUG") == "1":
        traceback.print_exc()
    text = " ".join(str(error).split())
    _print_error(f"{name}: internal error: {type(error).__name__}: {text}; please report (TLX_DEBUG=1 shows where)")


def _print_error(message: str) -> None:
    print_diagnostics(f"{message}\n")


_HEAD: Final = re.compile(
    r"(?m)^(?P<place>(?:[^\n:]+:\d+:\d+|[^\s:]+): )?(?P<kind>(?:internal )?error|warning|remark|note): (?P<message>.*)$"
)
_CARET: Final = re.compile(r"(?m)^( *)(\^~*)$")
_COLOURS: Final = {"error": 31, "internal error": 31, "warning": 35, "remark": 34, "note": 36}
_BOLD, _GREEN = 1, 32


def print_diagnostics(text: str) -> None:
    """Print errors, warnings, remarks or notes on standard error, in colour where that is a terminal.

    The environment variable NO_COLOR turns colours off (https://no-color.org).
    """
    if sys.stderr is None:
        return
    sys.stderr.write(coloured(text) if _takes_colour() else text)
    sys.stderr.flush()


def _takes_colour() -> bool:
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not is_plain and sys.stderr.isatty()


def coloured(text: str) -> str:
    """Rendered diagnostics in clang's colours for kind, location, message and caret."""
    return _CARET.sub(lambda m: m[1] + _in(m[2], _BOLD, _GREEN), _HEAD.sub(_coloured_head, text))


def _coloured_head(match: re.Match[str]) -> str:
    kind = match["kind"]
    place = _in(match["place"], _BOLD) if match["place"] else ""
    return f"{place}{_in(f'{kind}: ', _BOLD, _COLOURS[kind])}{_in(match['message'], _BOLD)}"


def _in(text: str, *codes: int) -> str:
    """A text in a terminal's colours."""
    return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m"


STDERR: Final = "<stderr>"
CACHE: Final = "<cache>"
_OPTIONAL_VALUE: Final = {"--remarks": STDERR, "--check": "3", "--tuned": CACHE, "--cache": CACHE}
_NUMBER: Final = re.compile(r"-(?:\.?\d|inf$|nan$)")


def respell(command: click.Command, arguments: list[str]) -> list[str]:
    """The arguments of a command in click's spelling; those of a group are unchanged."""
    if isinstance(command, click.Group):
        return arguments
    return list(_respelled(command, arguments))


def _respelled(command: click.Command, arguments: list[str]) -> Iterator[str]:
    takes_value = {
        spelling: not option.is_flag and not option.count
        for option in command.params
        if isinstance(option, click.Option)
        for spelling in (*option.opts, *option.secondary_opts)
    }
    takes_value |= {"--help": False, "-h": False}
    pending = iter(arguments)
    for argument in pending:
        if argument == "--":
            yield argument
            yield from pending
            return
        is_negative_number = bool(_NUMBER.match(argument))
        if not argument.startswith("-") or argument == "-" or is_negative_number:
            yield argument
            continue
        option, equals, value = argument.partition("=")
        option = _canonical(option, takes_value)
        if equals:
            yield from ([f"{option}={value}"] if option.startswith("--") else [option, value])
        elif option in _OPTIONAL_VALUE:
            yield f"{option}={_OPTIONAL_VALUE[option]}"
        else:
            yield option
            if takes_value.get(option):
                yield from _next(pending)


def _canonical(option: str, takes_value: dict[str, bool]) -> str:
    """The option with two dashes, if it has a long name; an error if it does not exist."""
    if option in takes_value:
        return option
    if f"-{option}" in takes_value:
        return f"-{option}"
    if option[:2] == "-O" and takes_value.get("-O"):
        return option
    raise click.NoSuchOption(option, possibilities=_similar(option, takes_value))


def _similar(option: str, known: dict[str, bool]) -> list[str]:
    near = nearest(f"--{option.lstrip('-')}", known)
    return [near] if near else []


def _next(pending: Iterator[str]) -> list[str]:
    return [value for value in [next(pending, None)] if value is not None]
