"""Inputs of whole models: pictures of text, files of this machine, sound."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
WORDS: Final = ("tensor", "Hello world", "7 + 5 = 12", "compile me", "AX4kQ", "LLVM", "9021", "kernel panic")
_HALF: Final = 1024  # bytes that magika looks at, at each end of a file
_BLOCK: Final = 4096
_NO_BYTE: Final = 256


def picture(text: str, height: int, width: int, size: float = 20.0, angle: float = 0.0) -> Array:
    """A picture of a text, black on white: uint8, `(height, width, 3)`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width / 100, height / 100), dpi=100)
    FigureCanvasAgg(figure)
    figure.text(0.5, 0.5, text, fontsize=size, ha="center", va="center", rotation=angle)
    stream = io.BytesIO()
    figure.savefig(stream, format="rgba", dpi=100)
    pixels = np.frombuffer(stream.getvalue(), np.uint8).reshape(height, width, 4)
    return pixels[..., :3].copy()


def normalized(pixels: Array) -> Array:
    """A picture as the networks of rapidocr take it: float32 between -1 and 1, `(1, 3, height, width)`."""
    return ((pixels.transpose(2, 0, 1)[None].astype(np.float32) / 255) - 0.5) / 0.5


def grey(pixels: Array) -> Array:
    """A picture as the network of ddddocr takes it: `(1, 1, height, width)`."""
    return ((pixels.mean(axis=2)[None, None] / 255 - 0.5) / 0.5).astype(np.float32)


def files(count: int) -> Iterator[tuple[Path, Array]]:
    """Files of the system and of this repository, and what magika looks at in them."""
    root = Path(__file__).parents[4]
    folders = (root / "docs", root / "tests", Path("/usr/share"), Path("/usr/lib"), Path("/usr/bin"), Path("/etc"))
    each = -(-count // len(folders))
    for folder in folders:
        found = (p for p in sorted(folder.rglob("*.*")) if _is_readable(p))
        seen: dict[str, int] = {}
        number = 0
        for path in found:
            if seen.get(path.suffix, 0) < 6 and number < each:
                seen[path.suffix] = seen.get(path.suffix, 0) + 1
                number += 1
                yield path, ends(path.read_bytes())


def _is_readable(path: Path) -> bool:
    try:
        return path.is_file() and 16 < path.stat().st_size < 1 << 20
    except OSError:
        return False


def ends(data: bytes) -> Array:
    """The first and the last bytes of a file, without white space around them: int32, `(1, 2048)`."""
    first, last = data[:_BLOCK].lstrip()[:_HALF], data[-_BLOCK:].rstrip()[-_HALF:]
    row = np.full(2 * _HALF, _NO_BYTE, np.int32)
    row[: len(first)] = np.frombuffer(first, np.uint8)
    row[len(row) - len(last) :] = np.frombuffer(last, np.uint8)
    return row[None]


def sound(seconds: float) -> Array:
    """Vowels, noise and silence, one after the other, 16,000 samples a second."""
    rng = np.random.default_rng(0)
    time = np.arange(int(seconds * 16000)) / 16000
    voice = sum(
        np.sin(2 * np.pi * 120 * k * time + rng.uniform(0, 6)) * np.exp(-(((120 * k - formant) / 150) ** 2))
        for k in range(1, 30)
        for formant in (700, 1220, 2600)
    )
    syllables = (np.sin(2 * np.pi * 3 * time) > 0) & (time % 2 < 1.2)
    return (0.3 * voice * syllables + 0.01 * rng.normal(size=time.size)).astype(np.float32)
