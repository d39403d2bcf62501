"""The driver's own options: `--tlx-NAME[=VALUE]`, for each option of `tlx-lower` that controls the lowering.

--tlx-target=avx2,avx512   ->   --target=avx2,avx512, read as `tlx-lower` reads it
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from tlx.cli.options import lowering_options
from tlx.cli.program import respell, usage_message
from tlx.diagnostics import UsageError

if TYPE_CHECKING:
    from tlx.lower.options import Options

PREFIX: Final = "--tlx-"
_OPTION: Final = re.compile(r"(?<![\w-])--(?=[a-z])")
_DISPLAY: Final = {"help_option_names": ["--help"], "max_content_width": 100}


@dataclass(frozen=True, slots=True)
class Settings:
    """How the driver lowers.

    Attributes:
        target: The target's name; empty for the best one for the machine that clang compiles for.
        options: The options of the lowering.
        remarks: Where the remarks of all sources are written: nowhere (None), to standard error, or to a file.
        save_remarks: Whether those of each source are written to a file of its own.
    """

    target: str
    options: Options
    remarks: str | None
    save_remarks: bool

    @property
    def has_remarks(self) -> bool:
        """Whether remarks are wanted."""
        return self.remarks is not None or self.save_remarks


@click.command(context_settings=_DISPLAY)
@click.option(
    "--target",
    metavar="NAME,...",
    default="",
    help="Targets of the kernels, of which a program picks the best at run time (default: the machine that clang "
    "compiles for).",
)
@click.option(
    "--clang", metavar="PATH", default="", help="The clang to run (default: TLX_CLANG, or the first on PATH)."
)
@click.option("--remarks", metavar="[=FILE]", help="Write decisions and the reasons for them to stderr, or to a file.")
@click.option(
    "--save-remarks", is_flag=True, help="Write them to a file for each source, beside its output: x.remarks for x.o."
)
@lowering_options
def driver(target: str, clang: str, remarks: str | None, save_remarks: bool, options: Options) -> Settings:
    """Compile C and C++ with tensors: clang's command line, and these options of TLX."""
    del clang  # was needed before these options are read
    return Settings(target, options, remarks, save_remarks)


def parse_settings(words: list[str], program: str) -> Settings:
    """The settings of `--tlx-` words; `--tlx-help` prints them and ends the process.

    Raises:
        UsageError: An option does not exist, or does not take its value.
    """
    plain = [f"--{word.removeprefix(PREFIX)}" for word in words]
    if "--help" in plain:
        with click.Context(driver, info_name=program) as context:
            text = driver.get_help(context).replace("[OPTIONS]", "[CLANG'S OPTIONS] [OPTIONS] FILE...", 1)
        click.echo(_prefixed(text))
        raise SystemExit(0)
    try:
        result: Any = driver.main(respell(driver, plain), prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        raise UsageError(_prefixed(usage_message(error, program))) from None
    assert isinstance(result, Settings)
    return result


def _prefixed(text: str) -> str:
    """A text about options, by the driver's names of them."""
    return _OPTION.sub(PREFIX, text)
