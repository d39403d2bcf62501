"""Options that commands share: the input's language, the cache, knobs, and the options of the lowering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from tlx.api.files import InputFormat
from tlx.cli.program import CACHE
from tlx.diagnostics import UsageError, did_you_mean
from tlx.lower.options import SETTINGS, STAGE_NAMES, Options

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tlx.ir.module import Module
    from tlx.lower.knobs import KnobSource
    from tlx.lower.options import Step


def complete_file(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Have the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_target(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The targets whose names begin like a word."""
    from click.shell_completion import CompletionItem

    from tlx.target.installed import targets

    known = {"native": "the best of this machine"} | {name: target.title for name, target in targets().items()}
    return [CompletionItem(name, help=title) for name, title in known.items() if name.startswith(incomplete)]


file_argument: Final = click.argument("file", default="-", shell_complete=complete_file)
"""The input; standard input by default."""
output_option: Final = click.option(
    "-o",
    "output",
    metavar="FILE",
    default="-",
    help="Output file; '-' (the default) is standard output.",
    shell_complete=complete_file,
)


def target_option(
    help_: str = "Target to generate code for (default: native, the best of this machine); 'tlx targets' lists them.",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --target, the name of a target."""
    return click.option("--target", metavar="NAME", default="native", help=help_, shell_complete=complete_target)


_LANGUAGE_HELP: Final = (
    "Language of the input: ll or ir for LLVM assembly or bitcode, tl for the tensor language, onnx or stablehlo for a "
    "model (default: by the file's extension)."
)
_STD_HELP: Final = "Version of the tensor language: v1 or v2 (default: v2)."


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add -x and --std to a command, whose function takes `input_format`, an `InputFormat`, in their place."""

    @wraps(function)
    def command(*, language: str, std: str, **others: Any) -> Any:
        return function(input_format=InputFormat(language, std), **others)

    std = click.option("--std", default="", metavar="VERSION", help=_STD_HELP)
    return click.option("-x", "language", default="", metavar="LANGUAGE", help=_LANGUAGE_HELP)(std(command))


def cache_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --cache to a command, whose function takes `cache`, a setting for `tlx.api.cache.DiskCache.of`."""

    def setting(_context: click.Context, _option: click.Parameter, value: str | None) -> bool | str:
        return True if value == CACHE else value or False

    return click.option("--cache", metavar="[=DIR]", help=help_text, callback=setting)


_KNOBS_HELP: Final = (
    "Tiles, cache blocks and packing: settings for all matrix products (kc=512), or a file of them by pattern."
)
_KNOB_OPTIONS: Final = (
    click.option("--tile", metavar="RxC", help="Register tile of every matrix product, rows x columns, such as 8x48."),
    click.option("--knobs", metavar="NAME=VALUE,...|FILE", multiple=True, help=_KNOBS_HELP),
    click.option(
        "--tuned",
        metavar="[=FILE]",
        help="Use the results of 'tlx tune' for this machine, from FILE or the user's cache.",
    ),
)


def knob_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --tile, --knobs and --tuned to a command, whose function takes them by these names."""
    for option in reversed(_KNOB_OPTIONS):
        function = option(function)
    return function


def knob_source(tile: str | None, knobs: tuple[str, ...], tuned: str | None) -> KnobSource:
    """The knobs of products: from the command line for all of them, else from the files, else from the database."""
    from tlx.lower.knobs import FirstKnobSource, FixedKnobs, KnobOrigin, parse_knobs

    if "" in knobs:
        raise UsageError("--knobs= is empty; write NAME=VALUE,... or the name of a file")
    settings = [text for text in knobs if "=" in text.partition(",")[0]]
    sources: list[KnobSource] = []
    if settings or tile is not None:
        words = [f"tile={tile}"] * (tile is not None) + settings
        by = " and ".join(["--tile"] * (tile is not None) + ["--knobs"] * bool(settings))
        sources.append(FixedKnobs(parse_knobs(",".join(words), KnobOrigin(f"from {by}"))))
    for path in knobs:
        if path not in settings:
            from tlx.tuning.knobs_file import read_knobs_file

            sources.append(read_knobs_file(path))
    if tuned is not None:
        from tlx.tuning import database

        sources.append(database.tuned_knobs(None if tuned == CACHE else tuned))
    return FirstKnobSource(tuple(sources))


def lowering_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of the lowering to a command, whose function takes them as `options`, an `Options`."""

    @wraps(function)
    def with_options(**arguments: Any) -> Any:
        values = {name: arguments.pop(name) for name in [*SETTINGS, "print_after"]}
        values["knobs"] = knob_source(arguments.pop("tile"), arguments.pop("knobs"), arguments.pop("tuned"))
        return function(options=Options(**values), **arguments)

    command: Callable[..., Any] = with_options
    for name in reversed([f.name for f in fields(Options)]):
        if name in SETTINGS:
            command = setting_option(name)(command)
        elif name == "knobs":
            command = knob_options(command)
        elif name == "print_after":
            command = _PRINT_AFTER(command)
    return command


def setting_option(name: str, help_: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option for a field of `Options`, for a command whose function takes a value of that name.

    Args:
        name: The field.
        help_: The line in `--help`, if the command uses the value for something other than lowering.
    """
    setting, default = SETTINGS[name]
    attributes: dict[str, Any] = {}
    if setting.type is bool:
        attributes["is_flag"] = True
    elif setting.type is tuple:
        attributes |= {"multiple": True, "callback": _words}
    elif setting.type is int and setting.choices:
        attributes["callback"] = _number
    if setting.choices:
        attributes["type"] = click.Choice([str(choice) for choice in setting.choices])
    elif setting.minimum is not None:
        attributes["type"] = click.IntRange(setting.minimum)
    if setting.metavar is not None:
        attributes["metavar"] = setting.metavar
    text = help_ or setting.help
    shown = None if setting.choices and default not in setting.choices else default
    if setting.choices and shown is not None:
        text = f"{text.removesuffix('.')} (default: {shown})."
    return click.option(setting.flag, name, default=shown, help=text, **attributes)


def _words(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for value in values for word in value.split(",") if word)


def _number(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> int:
    return int(value or 0)


def _printer(_ctx: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> _Printer | None:
    stages = {name for value in names for name in value.split(",")}
    if not stages:
        return None
    known = ("all", *STAGE_NAMES)
    for name in sorted(stages - set(known)):
        near = did_you_mean(name, known)
        raise UsageError(f"unknown stage '{name}' in --print-after; choose from {', '.join(known)}{near}")
    return _Printer(set(STAGE_NAMES) if "all" in stages else stages)


class _Printer:
    """Prints the module after some stages."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def __call__(self, step: Step, module: Module) -> None:
        if step.name in self._names:
            click.echo(f"; *** IR Dump After {step.title} ({step.name}) ***\n{module}", err=True)


_PRINT_AFTER: Final = click.option(
    "--print-after",
    multiple=True,
    metavar="STAGE|all",
    callback=_printer,
    help="Print the module after a stage, on stderr.",
)
