"""Says whether a change of the code changes what TLX writes: lowers a corpus before and after, and compares the bytes.

    tools/snapshot.py collect CORPUS [FOLDER ...]   gather the inputs: examples, lit tests, benchmarks, random programs,
                                                    and the .ll and .tl files of further folders
    tools/snapshot.py lower CORPUS RESULTS          lower each input, as the TLX beside this file does it
    tools/snapshot.py compare RESULTS RESULTS       name what differs; exit status 1 where anything does

A refactoring that only moves or renames code leaves every byte as it was. Collect the corpus once, before the change:
random programs are drawn by the code under test, and an input is compared only with itself.

Each input is lowered in two ways of `WAYS`, which rotate, so that every way meets every kind of input. What a way
leaves is a file `INPUT.WAY.ll`, with `.remarks` and with `.log`: the exit status and what went to standard error.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from importlib import import_module
from importlib.metadata import entry_points
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SUFFIXES: Final = (".ll", ".tl")
RANDOM_PROGRAMS: Final = 40  # of each profile
KINDS: Final = (".ll", ".remarks", ".log")
WAYS: Final = {
    "amx": ["--target=amx"],
    "avx512": ["--target=avx512"],
    "avx2": ["--target=avx2"],
    "generic": ["--target=generic"],
    "versions": ["--target=avx2,avx512,amx"],
    "amx-threads": ["--target=amx", "--threads=openmp"],
    "avx512-threads": ["--target=avx512", "--threads=openmp", "--thread-cycles=0"],
    "to-tiles": ["--target=amx", "--stop-after=to-tiles"],
    "to-2d": ["--target=avx512", "--stop-after=to-2d"],
}


def main() -> int:
    """Run one of the commands; gives the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="gather the inputs")
    collecting.add_argument("corpus", type=Path)
    collecting.add_argument("folders", type=Path, nargs="*")
    lowering = commands.add_parser("lower", help="lower each input")
    lowering.add_argument("corpus", type=Path)
    lowering.add_argument("results", type=Path)
    lowering.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    comparing = commands.add_parser("compare", help="name what differs")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--show", type=int, default=0, metavar="N", help="show the first N differences")
    asked = parser.parse_args()
    if asked.command == "collect":
        return collect(asked.corpus, asked.folders)
    if asked.command == "lower":
        return lower(asked.corpus, asked.results, asked.jobs)
    return compare(asked.before, asked.after, asked.show)


def collect(corpus: Path, folders: list[Path]) -> int:
    """Write the inputs to a new folder, each content once."""
    corpus.mkdir(parents=True)
    known: set[str] = set()
    counts: Counter[str] = Counter()
    for name, text in inputs(folders):
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in known:
            known.add(digest)
            counts[name.partition("-")[0]] += 1
            (corpus / name).write_text(text)
    print(f"{counts.total()} inputs:", ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0


def inputs(folders: list[Path]) -> Iterator[tuple[str, str]]:
    """Yield names of files, and texts."""
    yield from _of_folder("examples", ROOT / "examples")
    yield from _of_folder("lit", ROOT / "tests" / "lit")
    for folder in folders:
        yield from _of_folder(folder.name, folder)
    from tlx.bench.workloads.catalogue import all_workloads

    for index, work in enumerate(all_workloads()):
        yield f"bench-{index:03}.ll", work.text()
    from tlx.fuzz.generation.profiles import PROFILES
    from tlx.fuzz.generation.programs import random_program

    for profile in PROFILES:
        for seed in range(RANDOM_PROGRAMS):
            yield f"random-{profile}-{seed:02}.ll", random_program(profile, seed).text


def _of_folder(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file() and "Output" not in path.parts:
            name = "-".join((kind, *path.relative_to(folder).with_suffix("").parts))
            yield name + path.suffix, path.read_text(errors="surrogateescape")


def lower(corpus: Path, results: Path, jobs: int) -> int:
    """Lower each input of a corpus in its ways."""
    results.mkdir(parents=True)
    names = sorted(path.name for path in corpus.iterdir())
    ways = list(WAYS)
    tasks = [(name, ways[(index + shift) % len(ways)]) for index, name in enumerate(names) for shift in (0, 4)]
    os.chdir(corpus)  # messages name files: by the same name, whatever the folder
    command = next(iter(entry_points(group="console_scripts", name="tlx-lower"))).load()
    import_module("tlx.lower.pipeline")  # before the forks, which then start fast
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        statuses = list(pool.map(_lower_one, [(command, results, *task) for task in tasks], chunksize=8))
    print(f"{len(names)} inputs, lowered in {len(tasks)} ways: {statuses.count(0)} lowered, the others refused")
    return 0


def _lower_one(task: tuple[object, Path, str, str]) -> int:
    """Run `tlx-lower` in a fork, so that nothing of one input stays for the next."""
    command, results, name, way = task
    out = results / f"{name}.{way}"
    child = os.fork()
    if child == 0:
        log = os.open(f"{out}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.argv = ["tlx-lower", name, "-o", f"{out}.ll", f"--remarks={out}.remarks", "--no-verify-each", *WAYS[way]]
        status = 1
        try:
            assert callable(command)
            command()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with Path(f"{out}.log").open("a") as log:
        log.write(f"status {status}\n")
    return status


def compare(before: Path, after: Path, show: int) -> int:
    """Name the results that differ."""
    differing = 0
    for kind in KINDS:
        names = sorted({path.name for folder in (before, after) for path in folder.glob(f"*{kind}")})
        different = [name for name in names if _read(before / name) != _read(after / name)]
        differing += len(different)
        print(f"{kind}: {len(names)} compared, {len(different)} differ")
        for name in different:
            print(f"  {name}")
        for name in different[:show]:
            old, new = (_read(folder / name).splitlines() for folder in (before, after))
            lines = unified_diff(old, new, str(before / name), str(after / name), lineterm="", n=1)
            print("\n".join(line[: shutil.get_terminal_size().columns] for line in islice(lines, 40)))
    return int(differing > 0)


def _read(path: Path) -> str:
    return path.read_text(errors="surrogateescape") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
