"""`tlx completion`: the script that a shell needs to complete commands and options."""

from __future__ import annotations

import click


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")))
def completion(shell: str) -> None:
    """Print a script that completes the commands and options of tlx and tlx-lower.

    For bash, put this into ~/.bashrc: eval "$(tlx completion bash)"
    """
    from click.shell_completion import get_completion_class

    from tlx.cli.group import group
    from tlx.cli.lower import lower

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    for command, name in ((group, "tlx"), (lower, "tlx-lower")):
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        click.echo(script(command, {}, name, variable).source())
