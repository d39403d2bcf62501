"""`tlx cache`: show what the cache of compiled code holds, or clear it."""

from __future__ import annotations

import click

from tlx.diagnostics import counted, size_text


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("action", type=click.Choice(("info", "clear")))
@click.option(
    "--dir", "directory", metavar="DIR", help="Directory of the cache (default: TLX_CACHE_DIR, or the user's)."
)
def cache(action: str, directory: str | None) -> None:
    """Show or clear the cache of compiled code.

    info prints its directory, number and size of its entries, and their largest size; clear removes them.
    """
    from tlx.api.cache import SIZE_VARIABLE, DiskCache

    disk = DiskCache(directory)
    if action == "clear":
        removed = disk.clear()
        entries = counted(removed.entries, "entry", "entries")
        click.echo(f"removed {entries}, {size_text(removed.size)}, from {removed.directory}")
        return
    info = disk.info()
    click.echo(f"directory  {info.directory}")
    click.echo(f"entries    {info.entries}")
    click.echo(f"size       {size_text(info.size)} of {size_text(info.limit)} ({SIZE_VARIABLE})")
