"""Commands from LLVM IR to LLVM IR that do not lower: `tlx convert`, `tlx canonicalise`, `tlx raise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import click

from tlx.cli.options import input_options

if TYPE_CHECKING:
    from tlx.api.files import InputFormat
    from tlx.ir.module import Module

FORMS: Final = ("matrix", "tensor")


@click.command("convert", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="What to write.")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def convert(file: str, form: Literal["matrix", "tensor"], output: str, reading: InputFormat) -> None:
    """Write the tensor operations of FILE as calls of llvm.matrix.*, or the other way round.

    Tensor operations that LLVM's matrix intrinsics cannot say stay; remarks on stderr name them.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.llvm import judge
    from tlx.lower import pipeline

    text = files.read_ir(file, reading=reading)
    name = files.ir_name(file, reading)
    pipeline.verify(parse(text, name))
    module = parse(text, name)
    module = _with_matrices(module) if form == "matrix" else _with_tensors(module)
    judge.check_module(module, "convert")
    files.write_output(output, str(module))


def _with_matrices(module: Module) -> Module:
    from tlx.lower.remarks import Remarks

    remarks = Remarks()
    module = _front_end().to_matrix(module, remarks)
    for remark in remarks:
        click.echo(remark.render(), err=True)
    return module


def _with_tensors(module: Module) -> Module:
    from tlx.ir.tensors.calls import canonicalise

    module = _front_end().RAISE(module) or module
    canonicalise(module)
    return module


def _front_end() -> Any:
    """The front end of matrices, by its name, as the pipeline finds all of them."""
    from importlib import import_module

    from tlx.lower.pipeline import FRONT_ENDS

    return import_module(f"{FRONT_ENDS}.matrix")


@click.command("canonicalise", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def canonicalise(file: str, output: str, reading: InputFormat) -> None:
    """Give the tensor operations of FILE mangled names and declarations, so that stock LLVM tools take it.

    Operands of older prototypes are put in order. Everything else stays as it is, typed pointers too.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.lower import pipeline

    module = parse(files.read_ir(file, reading=reading), files.ir_name(file, reading))
    pipeline.verify(module)
    files.write_output(output, str(module))


@click.command("raise", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def raise_(file: str, output: str, reading: InputFormat) -> None:
    """Turn calls of the functions of tlx.h in FILE, as clang compiles them, into tensor operations.

    tlx-lower does this by itself; this command shows the outcome.
    """
    from tlx.api import files
    from tlx.ir.parser.module import parse
    from tlx.lower import pipeline

    text = files.read_ir(file, reading=reading)
    module = pipeline.raise_front_ends(parse(text, files.ir_name(file, reading)))
    files.write_output(output, str(module))
