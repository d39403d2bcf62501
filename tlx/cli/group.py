"""`tlx`: the group of commands, each imported when it is used, and shell completion."""

from __future__ import annotations

import importlib
from typing import Any, Final

import click

from tlx import __version__
from tlx.cli.program import respell
from tlx.diagnostics import nearest

_COMMANDS: Final = {
    "bench": ("compare the speed of generated code with the machine's peak and other libraries", "tlx.cli.bench:bench"),
    "cache": ("show or clear the cache of compiled code", "tlx.cli.cache:cache"),
    "canonicalise": (
        "give tensor operations the names and declarations that stock LLVM accepts",
        "tlx.cli.convert:canonicalise",
    ),
    "completion": ("print a script that completes the commands of TLX in a shell", "tlx.cli.group:completion"),
    "convert": ("turn tensor operations into LLVM's matrix intrinsics, or back", "tlx.cli.convert:convert"),
    "explain": ("write a page that shows what the stages make of a program, and why", "tlx.cli.explain:explain"),
    "fuzz": ("check TLX with random programs", "tlx.cli.fuzz:fuzz"),
    "lower": ("lower tensor operations to plain LLVM IR or machine code", "tlx.cli.lower:lower"),
    "raise": ("turn calls to the functions of tlx.h into tensor operations", "tlx.cli.convert:raise_"),
    "run": ("call a function with numpy arrays", "tlx.cli.run:run"),
    "targets": ("list the targets", "tlx.cli.inspect:targets"),
    "translate": ("translate the tensor language, or a model, to TLX IR", "tlx.cli.convert:translate"),
    "tune": ("find the fastest tiles, cache blocks and packing for matrix products", "tlx.cli.tune:tune"),
    "verify": ("check files for errors", "tlx.cli.inspect:verify"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; None if there is none."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name][1].split(":")
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, and its arguments in click's spelling."""
        name = args[0]
        if name not in _COMMANDS and not ctx.resilient_parsing:
            near = nearest(name, _COMMANDS)
            hint = f"\ntlx: did you mean '{near}'?" if near else ""
            raise click.UsageError(f"unknown command '{name}'; try 'tlx --help'{hint}")
        name, command, rest = super().resolve_command(ctx, args)
        if not command or ctx.resilient_parsing:
            return name, command, rest
        try:
            return name, command, respell(command, rest)
        except click.NoSuchOption as error:
            error.ctx = click.Context(command, ctx, name)
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (short, _) in _COMMANDS.items()])


def _print_include_dir(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.util import find_spec

    spec = find_spec("tlx.frontends.c_header")
    for path in (spec.submodule_search_locations or []) if spec else []:
        click.echo(path)
    ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option(
    "--include-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_include_dir,
    help="Print the directory of tlx.h and exit.",
)
@click.pass_context
def group(ctx: click.Context) -> None:
    """Tensors for stock LLVM IR."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(1)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")), metavar="bash|fish|zsh")
def completion(shell: str) -> None:
    """Print a script that completes the commands and options of tlx and tlx-lower.

    For bash, put this into ~/.bashrc: eval "$(tlx completion bash)"
    """
    from click.shell_completion import get_completion_class

    from tlx.cli.lower import lower

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    for command, name in ((group, "tlx"), (lower, "tlx-lower")):
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        click.echo(script(command, {}, name, variable).source())
