"""`tlx cache`: show what the cache of compiled code holds, or clear it."""

from __future__ import annotations

import click


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
        click.echo(f"removed {_count(removed.entries)}, {_bytes(removed.size)}, from {removed.directory}")
        return
    info = disk.info()
    click.echo(f"directory  {info.directory}")
    click.echo(f"entries    {info.entries}")
    click.echo(f"size       {_bytes(info.size)} of {_bytes(info.limit)} ({SIZE_VARIABLE})")


def _count(entries: int) -> str:
    return f"{entries} {'entry' if entries == 1 else 'entries'}"


def _bytes(size: int) -> str:
    """A size in the unit in which it has one to four digits."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.1f} {unit}" if unit != "B" else f"{size} B"
        amount /= 1024
    return f"{amount:.1f} TiB"
