"""`tlx targets`: the machines there is code for."""

from __future__ import annotations

import click


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def targets() -> None:
    """List the targets: name, whether this machine runs its code, title, features.

    'native' stands for the one marked with a star.
    """
    from tlx.target import host
    from tlx.target.discovery import targets as known

    flags = host.cpu_flags()
    best = host.native_target().name
    rows = [("", "name", "runs here", "title", "features")]
    for name, target in known().items():
        missing = host.missing_features(target, flags)
        here = "yes" if not missing else f"no: {', '.join(missing[:3])}{', ...' if missing[3:] else ''}"
        rows.append(("*" if name == best else "", name, here, target.title, ",".join(target.features) or "-"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[4]]).rstrip())
