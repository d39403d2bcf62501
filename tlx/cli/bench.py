"""`tlx bench`: how fast the generated code is, beside the machine's peak and other libraries."""

from __future__ import annotations

import click


@click.command(
    "bench",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: tlx bench gemm --types=f32,bf16 --sizes=64,1024 --target=avx512 --peers=libxsmm,openblas",
)
@click.argument("rows", nargs=-1, metavar="[ROW]...")
@click.option("--types", default="", metavar="A,B", help="Element types, as the table calls them; all.")
@click.option("--sizes", default="", metavar="A,B", help="Sizes, as the table calls them; all.")
@click.option("--variants", default="", metavar="A,B", help="Variants, or plain; all.")
@click.option("--target", default="native", metavar="NAME", help="Machine to aim at; it must be this one.")
@click.option("--peers", default=None, metavar="A,B", help="Libraries to compare with, or none; all that are found.")
@click.option("--peers-path", metavar="DIRS", help="Where peers are, between colons; TLX_PEERS.")
@click.option("--rounds", type=click.IntRange(1), default=11, metavar="N", help="Samples of each figure; 11.")
@click.option("--cpu", type=click.IntRange(0), metavar="N", help="Processor to stay on; the last one.")
@click.option("--json", "report", metavar="FILE", help="Write what was measured to a file.")
@click.option("--list", "listed", is_flag=True, help="List the workloads, and measure nothing.")
def bench(
    rows: tuple[str, ...],
    types: str,
    sizes: str,
    variants: str,
    target: str,
    peers: str | None,
    peers_path: str | None,
    rounds: int,
    cpu: int | None,
    report: str | None,
    listed: bool,
) -> None:
    """Measure the speed of generated code on workloads of the table; of all of them where no ROW is named."""
    from tlx.bench import command

    choice = command.Choice(rows, _words(types), _words(sizes), _words(variants))
    if listed:
        command.show(choice, click.echo)
        return
    names = None if peers is None else tuple(name for name in _words(peers) if name != "none")
    command.run(choice, command.Setting(target, names, peers_path, rounds, cpu, report), click.echo)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
