"""Build the wheel and the source distribution into dist/: the same bytes for the same commit.

    python tools/make_dist.py [FOLDER]

Both are built from what git tracks in HEAD, with the time of its commit. setuptools gives the files of a source
distribution the times of the build, so its archive is written again.
"""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Build both distributions."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    time = int(_git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as tree:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "HEAD"))) as tracked:
            tracked.extractall(tree, filter="data")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
        command = [sys.executable, "-m", "build", "--outdir", str(folder), tree]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        return done.returncode
    for path in folder.glob("*.tar.gz"):
        _write_again(path, time)
    for path in sorted(folder.iterdir()):
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")
    return 0


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def _write_again(path: Path, time: int) -> None:
    """Write an archive again with one time, one owner and sorted names."""
    with tarfile.open(path) as old:
        files = [(member, old.extractfile(member)) for member in old.getmembers() if member.isfile()]
        contents = sorted(((m.name, m.mode, f.read()) for m, f in files if f is not None), key=lambda file: file[0])
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as new:
        for name, mode, data in contents:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), time, 0o755 if mode & 0o100 else 0o644
            new.addfile(member, io.BytesIO(data))
    path.write_bytes(gzip.compress(archive.getvalue(), mtime=time))


if __name__ == "__main__":
    sys.exit(main())
