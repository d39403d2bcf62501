r"""The disk cache: compilation results, keyed by a hash of everything that determines them; see `tlx.api.cache_key`.

An entry is a file, named by its key:

    "TLX cache 1\n"   SHA-256 of all that follows, and of the key   number of sections, their sizes   the sections

A file appears under its name when it is complete, and never changes: processes need no lock. One that is damaged, by a
full disk or a power failure, does not have its hash; it is a miss, and the next compilation replaces it. Reading an
entry sets its modification time; those with the oldest are removed where all together exceed the limit.

An entry holds machine code: whoever can write to the directory decides what is run. It is created for its user alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import re
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tlx.api import files
from tlx.api.cache_key import cache_key
from tlx.diagnostics import Source, TlxWarning, UsageError, recorded_warnings
from tlx.lower.remarks import Remarks

if TYPE_CHECKING:
    from tlx.lower.options import Options
    from tlx.target.target import Target

DIRECTORY_VARIABLE: Final = "TLX_CACHE_DIR"
SIZE_VARIABLE: Final = "TLX_CACHE_SIZE"
DEFAULT_SIZE: Final = 1 << 30

_MAGIC: Final = b"TLX cache 1\n"
_ENTRY: Final = re.compile(r"[0-9a-f]{64}")
_TEMPORARY: Final = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f]{12}\.tmp")
_ABANDONED: Final = 3600
"""Seconds after which an incomplete file belongs to a process that has ended."""
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

_FAST: Final = 1  # zlib's level: a text shrinks to a tenth at 200 MB/s

_warned: Final[set[Path]] = set()


CacheSetting = bool | str | os.PathLike[str]
"""A `cache` argument: whether to use the cache in the default directory, or the directory of another one."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The contents of a cache: the number of entries, their size in bytes, and the limit of that size."""

    directory: Path
    entries: int
    size: int
    limit: int


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a cache, with the time of its last use."""

    path: Path
    size: int
    used: float
    is_entry: bool

    @property
    def is_removable(self) -> bool:
        """Whether it may be removed: a complete entry, or a temporary file too old to be still in use by a writer."""
        return self.is_entry or self.used < time.time() - _ABANDONED


class DiskCache:
    """A directory of entries, which any number of processes may use concurrently.

    Args:
        directory: The directory; None for the one that `TLX_CACHE_DIR` names, or `tlx/code` in the user's cache.

    Raises:
        UsageError: `TLX_CACHE_SIZE` is not a size.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = Path(directory) if directory is not None else default_directory()
        self.limit = size_limit()

    @classmethod
    def of(cls, cache: CacheSetting) -> DiskCache | None:
        """The cache that a `cache` argument names; None if it is False."""
        if cache is False:
            return None
        return cls() if cache is True else cls(cache)

    def load(self, key: str) -> list[bytes] | None:
        """The sections of an entry; None if there is none, or it is damaged."""
        path = self.directory / key
        try:
            sections = _sections(key, path.read_bytes()) if path.is_file() else None  # reading a pipe would wait
        except (OSError, ValueError):
            return None
        if sections is not None:
            with contextlib.suppress(OSError):
                os.utime(path)
        return sections

    def store(self, key: str, sections: Sequence[bytes]) -> None:
        """Add an entry, or replace it, and remove the least recently used ones beyond the limit.

        An entry that exceeds the limit by itself is not stored. If the directory cannot be written, a `TlxWarning` is
        issued, once in a process.
        """
        content = struct.pack(f"<{len(sections) + 1}Q", len(sections), *map(len, sections)) + b"".join(sections)
        if len(content) > self.limit:
            return
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self.directory / key
            if not path.is_file():
                path.unlink(missing_ok=True)  # writing to a pipe or a device would not replace it, and may wait
            with files.atomic_file(path) as file:
                file.write(_MAGIC + _digest(key, content) + content)
        except (OSError, ValueError) as error:
            self._warn(files.os_error_text(error) if isinstance(error, OSError) else "Invalid argument")
            return
        self._shrink()

    def info(self) -> CacheInfo:
        """Number and size of the entries.

        Raises:
            UsageError: The directory cannot be read.
        """
        sizes = [file.size for file in self._files() if file.is_entry]
        return CacheInfo(self.directory, len(sizes), sum(sizes), self.limit)

    def clear(self) -> CacheInfo:
        """Remove all entries; returns what there was.

        Raises:
            UsageError: The directory cannot be read, or an entry cannot be removed.
        """
        before = self.info()
        for file in self._files():
            if not file.is_removable:
                continue
            try:
                file.path.unlink(missing_ok=True)
            except OSError as error:
                message = f"could not remove '{file.path}' from the cache: {files.os_error_text(error)}"
                raise UsageError(message) from None
        return before

    def _files(self) -> list[_File]:
        """The entries and the incomplete files; files of others are left alone.

        Raises:
            UsageError: The directory cannot be read.
        """
        try:
            return list(_files_in(self.directory))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            text = files.os_error_text(error) if isinstance(error, OSError) else "Invalid argument"
            raise UsageError(f"could not read the cache '{self.directory}': {text}") from None

    def _shrink(self) -> None:
        """Remove the entries least recently used until the others fit the limit, and abandoned incomplete files."""
        with contextlib.suppress(UsageError):
            present = self._files()
            old = [file for file in present if file.is_removable and not file.is_entry]
            entries = sorted((file for file in present if file.is_entry), key=lambda file: file.used)
            excess = sum(file.size for file in entries) - self.limit
            for file in entries:
                if excess <= 0:
                    break
                old.append(file)
                excess -= file.size
            for file in old:
                with contextlib.suppress(OSError):
                    file.path.unlink()

    def _warn(self, text: str) -> None:
        if self.directory in _warned:
            return
        _warned.add(self.directory)
        remedy = f"nothing is cached; {DIRECTORY_VARIABLE} names another directory"
        warnings.warn(TlxWarning(f"could not write the cache '{self.directory}': {text}; {remedy}"), stacklevel=2)


@dataclass(frozen=True, slots=True)
class CacheInput:
    """The input of a cached compilation.

    Attributes:
        data: Its bytes.
        name: Its name in diagnostics, which is not part of the key.
    """

    data: bytes
    name: str

    def dumps(self, value: object) -> bytes:
        """Serialise a value with spans, without the name and the text of the input."""
        return self.compress(_dumped(value, self.name, self.data))

    def loads(self, data: bytes) -> Any:
        """Deserialise what `dumps` wrote; the spans refer to this input."""
        return _SourceUnpickler(io.BytesIO(zlib.decompress(data)), self.name, self.data).load()

    @staticmethod
    def compress(data: bytes) -> bytes:
        """Compressed data, for `zlib.decompress`."""
        return zlib.compress(data, _FAST)


class CacheEntry:
    """A compilation whose result a cache may hold.

    Args:
        cache: The cache.
        source: The input.
        target: The target, or its name.
        options: How to lower.
        others: What else determines the result.

    Raises:
        UsageError: There is no such target, and other packages provide targets.
    """

    def __init__(
        self,
        cache: DiskCache,
        source: CacheInput,
        target: Target | str,
        options: Options,
        others: Mapping[str, Any],
    ) -> None:
        self._cache, self._source, self._options = cache, source, options
        self._key = cache_key(source.data, target, options, others)

    @cached_property
    def cached_result(self) -> list[bytes] | None:
        """The result if it is cached; its remarks are added to those of the options, its warnings are issued again."""
        sections = self._cache.load(self._key) if self._key is not None else None
        if sections is None:
            return None
        *result, reported = sections
        remarks, given = self._source.loads(reported)
        self._options.remarks.extend(remarks)
        for warning in given:
            warnings.warn(warning, stacklevel=2)
        return result

    def get_or_compute(self, compute: Callable[[Options], list[bytes]]) -> list[bytes]:
        """The result, from the cache or computed and stored there.

        Its remarks go to the options, and its warnings are given, whether it is from the cache or not.

        Args:
            compute: Compiles the input with these options.

        Raises:
            TlxError: That of `compute`.
        """
        if self._key is None:
            return compute(self._options)
        if self.cached_result is not None:
            return self.cached_result
        fresh = self._options.updated(remarks=Remarks())
        try:
            with recorded_warnings() as given:
                result = compute(fresh)
        finally:
            self._options.remarks.extend(fresh.remarks)
        self._cache.store(self._key, [*result, self._source.dumps((list(fresh.remarks), given))])
        return result


class _SourcePickler(pickle.Pickler):
    """Pickles values without the name and the text of the input in their spans."""

    def __init__(self, file: io.BytesIO, name: str, data: bytes) -> None:
        super().__init__(file, protocol=5)
        self._name = name
        self._text = data.decode(errors="replace")
        self._ids: dict[Source, str | bool] = {}

    def persistent_id(self, obj: Any, /) -> Any:
        """For the input and for what a front end makes of it: its text, True for the input's."""
        if not isinstance(obj, Source) or obj.name != self._name:
            return None
        if obj not in self._ids:
            self._ids[obj] = obj.text == self._text or obj.text
        return self._ids[obj]


class _SourceUnpickler(pickle.Unpickler):
    """Reads what `_SourcePickler` writes."""

    def __init__(self, file: io.BytesIO, name: str, data: bytes) -> None:
        super().__init__(file)
        self._name = name
        self._data = data
        self._sources: dict[str | bool, Source] = {}

    def persistent_load(self, pid: Any, /) -> Source:
        """The source with an identifier of `_SourcePickler.persistent_id`."""
        if pid not in self._sources:
            self._sources[pid] = Source(self._name, self._data.decode(errors="replace") if pid is True else pid)
        return self._sources[pid]


def _dumped(value: object, name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    _SourcePickler(file, name, data).dump(value)
    return file.getvalue()


def default_directory() -> Path:
    """The directory that `TLX_CACHE_DIR` names, or `tlx/code` in the user's cache (`XDG_CACHE_HOME`, `~/.cache`)."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(chosen)
    return files.user_cache_directory() / "code"


def size_limit() -> int:
    """Limit of the total size of the entries in bytes: `TLX_CACHE_SIZE`, such as 500M; 1 GiB by default.

    Raises:
        UsageError: The variable is not a size.
    """
    text = os.environ.get(SIZE_VARIABLE, "").strip()
    if not text:
        return DEFAULT_SIZE
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"{SIZE_VARIABLE}='{text}' is not a size; write a number of bytes, or 500M, or 2G")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _digest(key: str, content: bytes | memoryview) -> bytes:
    """The hash of an entry, which is not that of the same content under another key."""
    digest = hashlib.sha256(key.encode())
    digest.update(content)
    return digest.digest()


def _sections(key: str, data: bytes) -> list[bytes] | None:
    """The sections in an entry's file; None if it is damaged."""
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = memoryview(data)[start:]
    if data[:start] != _MAGIC + _digest(key, content):
        return None
    (count,) = struct.unpack_from("<Q", content)
    sizes = struct.unpack_from(f"<{count}Q", content, 8)
    sections: list[bytes] = []
    at = 8 * (count + 1)
    for size in sizes:
        sections.append(bytes(content[at : at + size]))
        at += size
    return sections


def _files_in(directory: Path) -> Iterator[_File]:
    with os.scandir(directory) as listing:
        for file in listing:
            is_entry = _ENTRY.fullmatch(file.name) is not None
            if not is_entry and not _TEMPORARY.fullmatch(file.name):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process has removed it
                status = file.stat(follow_symlinks=False)
                yield _File(directory / file.name, status.st_size, status.st_mtime, is_entry)
