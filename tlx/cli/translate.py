"""`tlx translate`: kernels in the tensor language to TLX IR, to a C header, or to the other version of the language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from tlx.cli.options import input_options, setting_option
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.llvm.openmp import Threads

OUTPUTS: Final = ("ll", "ast", "signature", "header", "v2")
_EMIT_HELP: Final = (
    "What to write: TLX IR; the syntax tree as version 2 spells it; what C functions the kernels become; a C header; "
    "a version 1 program in version 2."
)


@click.command("translate", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
@click.option("--emit", "emit", type=click.Choice(OUTPUTS), default="ll", help=_EMIT_HELP)
@setting_option("threads", "Library that runs work-groups at the same time.")
@click.option("--typed-pointers", is_flag=True, help="Write 'float*' in place of 'ptr', for LLVM 14.")
def translate(
    file: str,
    output: str,
    emit: str,
    threads: Threads,
    typed_pointers: bool,
    reading: InputFormat,
) -> None:
    """Translate the kernels of FILE, written in the tensor language, to TLX IR.

    tlx-lower and all other commands do this by themselves for files whose names end in .tl or .ir, and with -x tl.
    Without --std, --emit=v2 takes FILE for version 1.
    """
    from tlx.api import files

    name = files.display_name(file)
    if reading.language not in ("", "tl"):
        raise UsageError(f"tlx translate reads the tensor language (-x tl), not '{reading.language}'")
    text = files.decode(files.read_bytes(file), name, hint="")
    files.check_translatable(text, name, "the tensor language")
    std = reading.std or ("v1" if emit == "v2" else "v2")
    written = _outputs().written(text, name, emit, std=std, typed_pointers=typed_pointers, threads=threads)
    files.write_output(output, written)


def _outputs() -> Any:
    """The module that writes them, by its name: nothing in `tlx` imports a front end."""
    from importlib import import_module

    from tlx.lower.pipeline import FRONT_ENDS

    return import_module(f"{FRONT_ENDS}.tensor_language.outputs")
