"""`tlx run`: call a function of a file on arrays, in machine code or in the evaluator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from tlx.api.files import os_error_text
from tlx.cli.options import cache_option, complete_file, input_options, setting_option, target_option
from tlx.diagnostics import UsageError
from tlx.lower.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from tlx.api.compiler import FunctionNamespace
    from tlx.api.files import InputFormat
    from tlx.intrinsics.numpy_types import Array
    from tlx.ir.module import Module

_BFLOAT: Final = ("bfloat16", "bfloat")
_CACHE_HELP: Final = "Load the code that an earlier run compiled, from DIR or the user's cache; see 'tlx cache'."
_EMULATOR_HELP: Final = "Run code for another machine under its emulator, such as 'qemu-ppc64le -cpu power10'."
_REMEDY: Final = "name the function to call with --function="
_F = TypeVar("_F")


@dataclass(frozen=True, slots=True)
class CallArgument:
    """An argument of the call, and the path to save it to afterwards."""

    value: Any
    save: str | None = None


@click.command(
    "run",
    context_settings={"help_option_names": ["-h", "--help"], "ignore_unknown_options": True},
    epilog="Example: tlx run gemm.ll --function gemm a.npy b.npy out:64x64:float32=c.npy",
)
@click.argument("file", shell_complete=complete_file)
@click.argument("arguments", nargs=-1, metavar="ARGS...", shell_complete=complete_file)
@click.option("--function", "name", metavar="NAME", help="Function to call; required if the file defines several.")
@target_option("Target to generate code for; this machine, or the emulated one, must support it (default: native).")
@click.option("--out", "outs", multiple=True, metavar="I=PATH", help="Save argument I, counted from 0, after the call.")
@click.option("--evaluate", is_flag=True, help="Interpret the function with numpy instead of compiling it.")
@click.option(
    "-O", "level", type=click.IntRange(0, 3), default=2, metavar="0-3", help="Optimisation level of LLVM (default: 2)."
)
@setting_option("emulate_matrix")
@click.option("--emulator", metavar="COMMAND", help=_EMULATOR_HELP)
@setting_option("triple")
@setting_option("cpu")
@setting_option("features")
@setting_option("vector_bits")
@cache_option(_CACHE_HELP)
@input_options
def run(
    file: str,
    arguments: tuple[str, ...],
    name: str | None,
    target: str,
    outs: tuple[str, ...],
    evaluate: bool,
    level: int,
    emulator: str | None,
    cache: bool | str,
    input_format: InputFormat,
    **settings: Any,
) -> None:
    """Call a function of FILE.

    ARGS are its arguments: a .npy file for a pointer or a vector; a number; out:SHAPE:TYPE for a new array of zeros,
    such as out:4x4:float32. PATH.npy=SAVED.npy and out:SHAPE:TYPE=SAVED.npy save the array after the call. The
    function's result is printed.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse

    values = [_argument(text) for text in arguments]
    saved = {i: a.save for i, a in enumerate(values) if a.save} | dict(_out(out, len(values)) for out in outs)
    module = parse(files.read_ir(file, input_format=input_format), files.ir_name(file, input_format))
    options = Options(**settings)
    if evaluate:
        function = _evaluated(module, name)
    elif emulator is not None:
        function = _emulated(module, name, target, level, emulator, options)
    else:
        function = _compiled(module, name, target, level, cache, options)
    returned = function(*(a.value for a in values))
    for index, path in saved.items():
        _save(path, values[index].value)
    if returned is not None:
        click.echo(str(returned))


def _argument(text: str) -> CallArgument:
    """Parse an argument of the command line."""
    body, _, save = text.partition("=")
    if body.startswith("out:"):
        return CallArgument(_zeros(body), save or None)
    if body.endswith(".npy"):
        return CallArgument(_load(body), save or None)
    return CallArgument(_number(text))


def _zeros(text: str) -> Array:
    import numpy as np

    _, shape, *rest = text.split(":")
    try:
        extents = [int(extent) for extent in shape.split("x")]
        return np.zeros(extents, dtype=_dtype(rest[0] if rest else "float32"))
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"'{text}' is not an array; write out:SHAPE:TYPE, such as out:4x4:float32") from None


def _dtype(name: str) -> Any:
    import numpy as np

    if name not in _BFLOAT:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise UsageError("arrays of bfloat16 need the package ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def _load(path: str) -> Array:
    import numpy as np

    try:
        with Path(path).open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"could not open input file '{path}': {os_error_text(error)}") from None
    except (ValueError, EOFError) as error:
        raise UsageError(f"'{path}' is not a .npy file: {error}") from None
    if array.dtype == np.dtype("V2"):  # numpy does not save the names of types of other packages
        return array.view(_dtype("bfloat16"))
    return array.view(np.uint8) if array.dtype == np.dtype("V1") else array  # 8-bit floats, which are bytes


def _number(text: str) -> int | float:
    for read in (lambda: int(text, 0), lambda: float(text)):
        try:
            return read()
        except ValueError:
            continue
    raise UsageError(f"argument '{text}' is not a number, a .npy file or out:SHAPE:TYPE")


def _out(text: str, count: int) -> tuple[int, str]:
    index, equals, path = text.partition("=")
    if not (equals and path and index.isdecimal()):
        raise UsageError(f"--out={text}: write --out=I=PATH, I being the number of an argument, from 0")
    if int(index) >= count:
        known = f"the last of the arguments, numbered from 0, is {count - 1}" if count else "there are no arguments"
        raise UsageError(f"--out={text}: {known}")
    return int(index), path


def _emulated(
    module: Module, name: str | None, target: str, level: int, emulator: str, options: Options
) -> Callable[..., Any]:
    from tlx.api.emulation import compile_emulated

    target = "generic" if target == "native" else target
    return _entry(compile_emulated(module, target, emulator, entry=name, opt_level=level, options=options), name)


def _compiled(
    module: Module, name: str | None, target: str, level: int, cache: bool | str, options: Options
) -> Callable[..., Any]:
    from tlx.api import compiler

    if options.triple:
        raise UsageError(f"--mtriple={options.triple}: run code for other machines with --emulator=")
    compiled = compiler.compile(module, target, entry=name, opt_level=level, options=options, cache=cache)
    return _entry(compiled, name).call_prepared


def _entry(compiled: FunctionNamespace[_F], name: str | None) -> _F:
    """The function that is named, or the only one."""
    from tlx.api.lowering import choose_function

    if name is None and len(functions := list(compiled)) > 1:
        choose_function(functions, None, _REMEDY)
    return compiled.entry


def _evaluated(module: Module, name: str | None) -> Callable[..., Any]:
    from tlx.api.lowering import choose_function
    from tlx.evaluate import Machine
    from tlx.ir.parser.module import parse_fully
    from tlx.lower.pipeline import raise_front_ends

    machine = Machine(raise_front_ends(module))
    if name is None:
        defined = [f.name for f in parse_fully(str(module)).functions]
        name = choose_function(defined, None, _REMEDY)
    return partial(machine.call, name)


def _save(path: str, value: Any) -> None:
    import io

    import numpy as np

    from tlx.api import files

    if not isinstance(value, np.ndarray):
        raise UsageError(f"'{path}' cannot hold {value!r}: only arrays are saved")
    contents = io.BytesIO()
    np.save(contents, cast("Array", value))
    files.write_output(path, contents.getvalue())
