"""Commands that write LLVM IR without lowering it: `tlx convert`, `tlx canonicalise`, `tlx raise`, `tlx translate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import click

from tlx.cli.options import file_argument, input_options, output_option, setting_option
from tlx.cli.program import print_diagnostics
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.ir.module import Module
    from tlx.llvm.openmp import Threads

OUTPUTS: Final = ("ll", "ast", "signature", "header", "v2")
_EMIT_HELP: Final = (
    "What to write: TLX IR (the default); the syntax tree, in the syntax of version 2; the signatures of the kernels "
    "as C functions; a C header; a version 1 program converted to version 2."
)


@click.command("translate", context_settings={"help_option_names": ["-h", "--help"]})
@file_argument
@output_option
@input_options
@click.option("--emit", "emit", type=click.Choice(OUTPUTS), default="ll", help=_EMIT_HELP)
@setting_option("threads", "Library that runs work-groups in parallel.")
@click.option("--typed-pointers", is_flag=True, help="Write typed pointers ('float*' instead of 'ptr'), for LLVM 14.")
def translate(
    file: str,
    output: str,
    emit: str,
    threads: Threads,
    typed_pointers: bool,
    input_format: InputFormat,
) -> None:
    """Translate FILE, kernels in the tensor language or a model, to TLX IR.

    The language is that of -x or of the file's extension, else the tensor language. tlx-lower and all other commands
    translate these files automatically. Without --std, --emit=v2 reads FILE as version 1.
    """
    from tlx.api import files

    name = files.display_name(file)
    if input_format.language in ("ll", "ir"):
        raise UsageError(f"tlx translate reads the tensor language and models, not '{input_format.language}'")
    data = files.read_bytes(file)
    if (translation := files.translation_of_other_language("tl", data, file, threads, input_format)) is not None:
        if emit != "ll" or typed_pointers:
            wrong = "--typed-pointers" if typed_pointers else f"--emit={emit}"
            raise UsageError(
                f"{wrong} is for the tensor language; other languages and models are written as --emit=ll", name=name
            )
        files.write_output(output, translation)
        return
    text = files.decode(data, name, hint="")
    files.check_translatable(text, name, "the tensor language")
    std = input_format.std or ("v1" if emit == "v2" else "v2")
    written = _outputs().written(text, name, emit, std=std, typed_pointers=typed_pointers, threads=threads)
    files.write_output(output, written)


def _outputs() -> Any:
    """The tensor language's writers, imported by name, as nothing in `tlx` imports a front end."""
    from importlib import import_module

    from tlx.target.discovery import FRONT_END_GROUP

    return import_module(f"{FRONT_END_GROUP}.tensor_language.translation")


FORMS: Final = ("matrix", "tensor")


@click.command("convert", context_settings={"help_option_names": ["-h", "--help"]})
@file_argument
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="What to write.")
@output_option
@input_options
def convert(file: str, form: Literal["matrix", "tensor"], output: str, input_format: InputFormat) -> None:
    """Write the tensor operations of FILE as calls to llvm.matrix.*, or the reverse.

    Tensor operations without a matrix intrinsic stay; remarks on stderr name them.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.llvm import verification
    from tlx.lower import pipeline

    text = files.read_ir(file, input_format=input_format)
    name = files.ir_name(file, input_format)
    pipeline.verify(parse(text, name))
    module = parse(text, name)
    module = _with_matrices(module) if form == "matrix" else _with_tensors(module)
    verification.check_module(module, "convert")
    files.write_output(output, str(module))


def _with_matrices(module: Module) -> Module:
    from tlx.lower.remarks import Remarks

    remarks = Remarks()
    module = _front_end().to_matrix(module, remarks)
    for remark in remarks:
        print_diagnostics(f"{remark.render()}\n")
    return module


def _with_tensors(module: Module) -> Module:
    from tlx.ir.tensors.calls import canonicalise

    module = _front_end().RAISE(module) or module
    canonicalise(module)
    return module


def _front_end() -> Any:
    """The front end of matrices, imported by name."""
    from importlib import import_module

    from tlx.target.discovery import FRONT_END_GROUP

    return import_module(f"{FRONT_END_GROUP}.matrix")


@click.command("canonicalise", context_settings={"help_option_names": ["-h", "--help"]})
@file_argument
@output_option
@input_options
def canonicalise(file: str, output: str, input_format: InputFormat) -> None:
    """Give the tensor operations of FILE mangled names and declarations, so that stock LLVM tools accept it.

    Operands of older prototypes are reordered. Everything else stays as it is, typed pointers included.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.lower import pipeline

    module = parse(files.read_ir(file, input_format=input_format), files.ir_name(file, input_format))
    pipeline.verify(module)
    files.write_output(output, str(module))


@click.command("raise", context_settings={"help_option_names": ["-h", "--help"]})
@file_argument
@output_option
@input_options
def raise_(file: str, output: str, input_format: InputFormat) -> None:
    """Turn calls to the functions of tlx.h in FILE, as clang compiles them, into tensor operations.

    tlx-lower does this automatically; this command shows the result.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.lower import pipeline

    text = files.read_ir(file, input_format=input_format)
    module = pipeline.raise_front_ends(parse(text, files.ir_name(file, input_format)))
    files.write_output(output, str(module))
