"""`tlx convert`: between tensor operations and LLVM's matrix intrinsics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import click

from tlx.cli.reading import input_options

if TYPE_CHECKING:
    from tlx.files import Reading
    from tlx.ir.module import Module

FORMS: Final = ("matrix", "tensor")


@click.command("convert", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", default="-")
@click.option("--to", "form", type=click.Choice(FORMS), required=True, help="What to write.")
@click.option("-o", "output", metavar="FILE", default="-", help="Output file; '-' (the default) is standard output.")
@input_options
def convert(file: str, form: Literal["matrix", "tensor"], output: str, reading: Reading) -> None:
    """Write the tensor operations of FILE as calls of llvm.matrix.*, or the other way round.

    Tensor operations that LLVM's matrix intrinsics cannot say stay; remarks on stderr name them.
    """
    from tlx import files, judge, pipeline
    from tlx.ir.reader import parse

    text = files.read_ir(file, reading=reading)
    name = files.ir_name(file, reading)
    pipeline.verify(parse(text, name))
    module = parse(text, name)
    module = _with_matrices(module) if form == "matrix" else _with_tensors(module)
    judge.check_module(module, "convert")
    files.write(output, str(module))


def _with_matrices(module: Module) -> Module:
    from tlx.remarks import Remarks

    remarks = Remarks()
    module = _front_end().to_matrix(module, remarks)
    for remark in remarks:
        click.echo(remark.render(), err=True)
    return module


def _with_tensors(module: Module) -> Module:
    from tlx.ir.canonical import canonicalise

    module = _front_end().RAISE(module) or module
    canonicalise(module)
    return module


def _front_end() -> Any:
    """The front end of matrices, by its name, as the pipeline finds all of them."""
    from importlib import import_module

    from tlx.pipeline import FRONT_ENDS

    return import_module(f"{FRONT_ENDS}.matrix")
