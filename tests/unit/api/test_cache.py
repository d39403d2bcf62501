"""The cache on disk: what hits and misses, damage, many processes, size, and directories that cannot be written."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import tlx
from tests.support.tools import HANG_S
from tlx.api.cache import DiskCache, default_directory, size_limit
from tlx.api.cache_key import cache_key
from tlx.diagnostics import TlxError, TlxWarning, UsageError
from tlx.llvm import codegen
from tlx.lower.knobs import FirstKnobSource, FixedKnobs, KnobQuery, Knobs, parse_knobs
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks
from tlx.target import system
from tlx.target.installed import targets
from tlx.target.lookup import find_target
from tlx.target.target import Detection, Target
from tlx.tuning.database import Database, EntryKey, TunedKnobs
from tlx.tuning.knobs_file import parse_knobs_file

PRODUCT: Final = Path(__file__).parents[3].joinpath("examples/ir/matmul.ll").read_text(encoding="utf-8")
ANSWER: Final = """
define i32 @answer(ptr %x) {
  %v = load i32, ptr %x
  %r = add i32 %v, 41
  ret i32 %r
}

define i128 @wide(i128 %x) {
  ret i128 %x
}
"""
KEY: Final = "0123456789abcdef" * 4
SECTIONS: Final = [b"", b"one", bytes(range(256)) * 20]


def key(text: bytes = b"x", target: Target | str = "avx2", others: dict[str, Any] | None = None, **options: Any) -> str:
    found = cache_key(text, target, Options(**options), others or {"level": 2})
    assert found is not None
    return found


OTHER_VALUES: Final[dict[str, Any]] = {
    "cpu": "skylake",
    "features": ("+avxvnni",),
    "vector_bits": 512,
    "triple": "x86_64-unknown-linux-gnu",
    "start_after": "to-2d",
    "stop_after": "to-tiles",
    "verify_each": True,
    "knobs": FixedKnobs(parse_knobs("kc=64")),
    "request_permission": False,
    "emulate_matrix": True,
    "threads": "openmp",
    "thread_cycles": 5,
    "weight_bytes": 0,
    "workspace": "arena",
    "bf16_intermediates": "float",
    "float_products": "tf32",
    "fp8_products": "tensor-cores",
    "decision_seed": 3,
}


def test_key_is_the_same_for_the_same_compilation() -> None:
    assert key() == key() == key(remarks=Remarks())
    assert key(target=find_target("avx2")) == key(target=find_target("avx2"))
    assert key(target="native") == key(target="native")


@pytest.mark.parametrize("option", [f.name for f in fields(Options) if f.name not in ("print_after", "remarks")])
def test_each_option_is_part_of_the_key(option: str) -> None:
    assert key(**{option: OTHER_VALUES[option]}) != key()


@pytest.mark.parametrize("name", [*targets()])
def test_every_target_has_a_key(name: str) -> None:
    assert key(target=name) is not None


def test_input_target_and_level_are_part_of_the_key() -> None:
    assert len({key(), key(b"y"), key(target="avx512"), key(target="avx2+avxvnni"), key(others={"level": 3})}) == 5


def test_caches_features_and_costs_of_the_machine_are_part_of_the_key() -> None:
    target = find_target("avx512")
    others = [
        replace(target, caches=replace(target.caches, l2=target.caches.l2 * 2)),
        target.with_features(("+avx512fp16",)),
        replace(target, dots=tuple(replace(dot, cycles=dot.cycles + 1) for dot in target.dots)),
    ]
    assert len({key(target=other) for other in [target, *others]}) == 4


CPUINFO: Final = """processor : 0
model name : Fast Processor
flags : fma avx2 avx512f
cpu MHz : 2000.000
"""


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """A function that gives the keys for targets by name on a machine."""

    def keys(
        cpuinfo: str = CPUINFO,
        caches: tuple[tuple[str, int, int], ...] = (("Data", 1, 32 << 10), ("Unified", 2, 1 << 20)),
        sharers: int = 2,
        unlisted: frozenset[str] = frozenset(),
        architecture: str = "x86_64",
    ) -> list[str]:
        monkeypatch.setattr(system, "cpuinfo", lambda: cpuinfo)
        monkeypatch.setattr(system, "cache_entries", lambda: list(caches))
        monkeypatch.setattr(system, "cache_sharers", lambda: sharers)
        monkeypatch.setattr("platform.machine", lambda: architecture)
        for module in ("x86", "arm"):
            monkeypatch.setattr(f"tlx.legalize.{module}.host.detect_features", lambda: unlisted)
        system.machine_facts.cache_clear()
        return [key(target=name) for name in ("native", "avx2")]

    yield keys
    system.machine_facts.cache_clear()


@pytest.mark.parametrize(
    "fact",
    [
        {"cpuinfo": CPUINFO.replace(" avx512f", "")},
        {"cpuinfo": CPUINFO.replace("Fast", "Slow")},
        {"caches": (("Data", 1, 48 << 10), ("Unified", 2, 1 << 20))},
        {"caches": (("Data", 1, 32 << 10), ("Unified", 2, 2 << 20))},
        {"sharers": 4},
        {"unlisted": frozenset({"amx-fp16"})},
        {"architecture": "aarch64"},
    ],
    ids=str,
)
def test_each_fact_of_the_machine_is_part_of_the_key(described: Callable[..., list[str]], fact: dict[str, Any]) -> None:
    """Also of a target by name: its dot products cost what they do on this machine."""
    assert not {*described()} & {*described(**fact)}


def test_clocks_and_numbers_of_processors_are_not_part_of_the_key(described: Callable[..., list[str]]) -> None:
    other = CPUINFO.replace("2000", "3000")
    assert described(other + "\n" + CPUINFO.replace(": 0", ": 1")) == described()


def test_unknown_machine_has_targets_by_value(described: Callable[..., list[str]]) -> None:
    """What its features are, LLVM says."""
    described("processor : 0\n")
    assert key(target="avx2") == key(target=find_target("avx2"))


def test_llvm_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "binding").mkdir()
    library = tmp_path / "binding" / "libllvmlite.so"
    spec = importlib.util.spec_from_file_location("llvmlite", tmp_path / "__init__.py")
    keys = [key()]

    def find_spec(_name: str) -> ModuleSpec | None:
        return spec

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    for size, seconds in ((1, 1), (2, 1), (2, 2)):
        library.write_bytes(bytes(size))
        os.utime(library, (seconds, seconds))
        keys.append(key())
    assert len(set(keys)) == 4
    spec = None
    assert cache_key(b"x", "avx2", Options(), {}) is None


def tuned(path: Path, best: str, *, cpu: str = "cpu", threads: int = 1) -> TunedKnobs:
    """A tuning database with one entry."""
    entry = EntryKey("matmul 8x8x8 float", "avx2", (), "cpu").new
    entry["best"] = {"knobs": best, "ratio": 1.1, "rate": 1.0, "default_rate": 1.0, "date": "2026-01-01"}
    path.write_text(json.dumps({"schema": 1, "entries": {"x": entry}}))
    return TunedKnobs(Database(path), cpu, threads)


def test_knobs_are_part_of_the_key(tmp_path: Path) -> None:
    """Knobs of the command line, of files, and of the tuning database; by their contents."""

    def file(tile: str) -> Any:
        return parse_knobs_file(f'["matmul 8x8x8 float"]\ntile = "{tile}"\n', "knobs.toml")

    path = tmp_path / "tuned.json"
    makers: list[Callable[[], Any]] = [
        lambda: FixedKnobs(parse_knobs("kc=64")),
        lambda: FixedKnobs(parse_knobs("kc=65")),
        lambda: file("8x8"),
        lambda: file("8x16"),
        lambda: FirstKnobSource((file("8x8"), FixedKnobs(parse_knobs("kc=64")))),
        lambda: tuned(path, "kc=64"),
        lambda: tuned(path, "kc=65"),
        lambda: tuned(path, "kc=65", cpu="other"),
        lambda: tuned(path, "kc=65", threads=2),
    ]
    keys = [key(knobs=make()) for make in makers]
    assert len(set(keys)) == len(makers)
    assert [key(knobs=make()) for make in makers] == keys


@pytest.mark.parametrize("target", targets())
def test_code_for_each_target_is_cached(target: str) -> None:
    assert cache_key(b"x", target, Options(), {}) is not None


def test_what_has_no_lasting_name_is_not_cached() -> None:
    def knobs(_query: KnobQuery) -> Knobs:
        return Knobs()

    unnamed = replace(find_target("avx2"), detection=Detection(find_features=lambda: frozenset({"x"})))
    assert cache_key(b"x", "avx2", Options(knobs=knobs), {}) is None
    assert cache_key(b"x", "avx2", Options(knobs=FirstKnobSource((knobs,))), {}) is None
    assert cache_key(b"x", unnamed, Options(), {}) is None
    assert cache_key(b"x", "avx2", Options(print_after=lambda _step, _module: None), {}) is None


PRINT_KEY: Final = """
import sys, tlx
tlx.__version__ = sys.argv[1]
tlx.__path__.append(sys.argv[2])
from dataclasses import replace
from tlx.api.cache_key import cache_key
from tlx.lower.options import Options
from tlx.target.lookup import find_target
from tlx.target.target import Detection
import plugin.target
target = replace(find_target("avx2"), detection=Detection(find_features=plugin.target.detect))
for target in ("avx2", target):
    print(cache_key(b"x", target, Options(), {"set": frozenset("abcdefgh")}))
"""


def test_programs_are_part_of_the_key(tmp_path: Path) -> None:
    """The version and the files of TLX, and the files of a package that the target is from; not the process."""
    package = tmp_path / "plugin"
    package.mkdir()
    (package / "__init__.py").touch()
    module = package / "target.py"
    own = tmp_path / "own"
    (own / "folder").mkdir(parents=True)

    def printed(
        version: str = "1", code: str = "return frozenset()", rule: str = "", time: int = 1, name: str = "rule.py"
    ) -> list[str]:
        module.write_text(f"def detect():\n    {code}\n")
        os.utime(module, (1, 1))
        for old in own.glob("folder/*.py"):
            old.unlink()
        file = own / "folder" / name
        file.write_text(rule)
        os.utime(file, (time, time))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        command = [sys.executable, "-B", "-c", PRINT_KEY, version, str(own)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    first = printed()
    others = [printed("2"), printed(rule="x = 1\n"), printed(time=2), printed(name="other.py")]
    named, valued = zip(first, *others, strict=True)
    assert len({*named, *valued}) == 10
    assert all(len(found) == 64 for found in (*named, *valued))
    changed_package = printed(code="return frozenset({'x'})")
    assert changed_package[0] == first[0], "a target of TLX is not from that package"
    assert changed_package[1] != first[1]
    assert printed() == first


OUTSIDE: Final = """
from dataclasses import replace
from tlx.target.lookup import find_target
from tlx.target.target import Detection
def detect():
    return frozenset({})
TARGET = replace(find_target("avx2"), name="outside", detection=Detection(find_features=detect))
"""
PRINT_OUTSIDE_KEYS: Final = """
from tlx.api.cache_key import cache_key
from tlx.lower.options import Options
print(*(cache_key(b"x", name, Options(), {}) for name in ("avx2", "outside")))
"""


def test_targets_of_other_packages_are_part_of_the_key(tmp_path: Path) -> None:
    """One may have the name of a target of TLX."""
    (tmp_path / "outside-1.0.dist-info").mkdir()
    (tmp_path / "outside-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    entries = tmp_path / "outside-1.0.dist-info" / "entry_points.txt"

    def printed(feature: str) -> list[str]:
        (tmp_path / "outside.py").write_text(OUTSIDE.replace("{}", f"{{'{feature}'}}"))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        command = [sys.executable, "-B", "-c", PRINT_OUTSIDE_KEYS]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    entries.write_text("[tlx.legalize]\noutside = outside:TARGET\n")
    first, second = printed("a"), printed("long")
    assert len({key(others={}), first[0], first[1], second[1]}) == 4
    assert first[0] == second[0]


HIT: Final = """
import sys, tlx
module = tlx.compile(sys.argv[1], cache=sys.argv[2])
print(*sorted(name for name in sys.modules if name.startswith("tlx.")))
"""


def test_a_hit_imports_neither_targets_nor_stages(tmp_path: Path) -> None:
    def imported() -> list[str]:
        command = [sys.executable, "-c", HIT, ANSWER, str(tmp_path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()

    unused = {"tlx.target.target", "tlx.target.host", "tlx.lower.pipeline", "tlx.ir.module", "tlx.api.wrappers"}
    assert unused <= {*imported()}
    assert not unused & {*imported()}


@pytest.fixture
def no_codegen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after which nothing can be compiled."""

    def fail(*_arguments: object, **_keywords: object) -> bytes:
        raise AssertionError

    return lambda: monkeypatch.setattr(codegen, "emit_code", fail)


def test_a_hit_is_what_was_compiled(tmp_path: Path, no_codegen: Callable[[], None]) -> None:
    """The code, the lowered text, remarks and errors; these name the file that is compiled now."""
    first_remarks, second_remarks = Remarks(), Remarks()
    paths = [tmp_path / "first.ll", tmp_path / "second.ll"]
    for path in paths:
        path.write_text(PRODUCT + ANSWER)
    first = tlx.compile(paths[0], cache=tmp_path / "cache", remarks=first_remarks)
    no_codegen()
    second = tlx.compile(paths[1], cache=tmp_path / "cache", remarks=second_remarks, entry="answer")
    assert list(second) == list(first)
    assert second(np.array([1], np.int32)) == first["answer"](np.array([1], np.int32)) == 42
    assert second.lowered == first.lowered
    assert list(first_remarks)
    rendered = [remark.render() for remark in first_remarks]
    assert [remark.render().replace("second.ll", "first.ll") for remark in second_remarks] == rendered
    errors: list[str] = []
    for module in (first, second):
        with pytest.raises(UsageError) as error:
            module["wide"]
        errors.append(str(error.value))
    assert errors[0].startswith(f"{paths[0]}:")
    assert errors[1] == errors[0].replace("first.ll", "second.ll")
    with pytest.raises(UsageError, match="the module defines no function @missing"):
        tlx.compile(paths[1], cache=tmp_path / "cache", entry="missing")


def test_kernels_compute_the_same(tmp_path: Path) -> None:
    random_numbers = np.random.default_rng(0)
    a, b = (random_numbers.standard_normal((4, 512, 512), np.float32) for _ in range(2))
    results: list[Any] = []
    cached: dict[str, Any] = {"cache": tmp_path}
    every: list[dict[str, Any]] = [{}, cached, cached, {**cached, "workspace": "argument"}]
    for options in every:
        module = tlx.compile(PRODUCT, **options)
        result = np.zeros((4, 512, 512), np.float32)
        module(a, b, result)
        results.append(result)
    assert all(np.array_equal(result, results[0]) for result in results)
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-4, atol=1e-3)
    assert DiskCache(tmp_path).info().entries == 2


def test_modules_texts_and_languages_are_cached(tmp_path: Path, no_codegen: Callable[[], None]) -> None:
    kernel = "func @nothing() {}\n"
    (tmp_path / "kernel.tl").write_text(kernel)
    calls: list[Callable[[], Any]] = [
        lambda: tlx.compile(ANSWER, cache=tmp_path / "cache"),
        lambda: tlx.compile(tlx.parse(ANSWER, "name"), cache=tmp_path / "cache"),
        lambda: tlx.compile(kernel, language="tl", cache=tmp_path / "cache"),
        lambda: tlx.compile(tmp_path / "kernel.tl", cache=tmp_path / "cache"),
    ]
    names = [list(call()) for call in calls]
    no_codegen()
    assert [list(call()) for call in calls] == names
    assert DiskCache(tmp_path / "cache").info().entries == len(calls)


def test_user_cache_is_opt_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path / "cache"))
    tlx.compile(ANSWER)
    assert not (tmp_path / "cache").exists()
    tlx.compile(ANSWER, cache=True)
    assert DiskCache().info().entries == 1
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TLX_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", "/home/user")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_directory() == Path("/home/user/.cache/tlx/code")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_directory() == Path("/cache/tlx/code")
    monkeypatch.setenv("TLX_CACHE_DIR", "/here")
    assert default_directory() == Path("/here")


@pytest.mark.parametrize(
    ("text", "size"), [("", 1 << 30), ("100", 100), ("1.5k", 1536), ("2 GiB", 2 << 30), ("3MB", 3 << 20)]
)
def test_size_limit(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_SIZE", text)
    assert size_limit() == size


@pytest.mark.parametrize("text", ["-1", "many", "1X", "1 2"])
def test_size_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_SIZE", text)
    with pytest.raises(UsageError, match="is not a size"):
        DiskCache()


def mutant(data: bytes, draw: random.Random) -> bytes:
    """The data with some bytes changed, removed, repeated or added; different from it."""
    result = bytearray(data)
    while bytes(result) == data:
        start = draw.randrange(len(data) + 1)
        end = min(len(data), start + draw.choice((1, 8, 4000)))
        match draw.randrange(5):
            case 0:
                result[start:end] = draw.randbytes(end - start)
            case 1:
                del result[start:end]
            case 2:
                del result[start:]
            case 3:
                result[start:start] = draw.randbytes(draw.randrange(1, 20))
            case _:
                result[start:end] = bytes(end - start)
    return bytes(result)


def test_damaged_entries_are_misses(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.store(KEY, SECTIONS)
    whole = (tmp_path / KEY).read_bytes()
    draw = random.Random(0)
    for _ in range(5000):
        (tmp_path / KEY).write_bytes(mutant(whole, draw))
        assert cache.load(KEY) is None
    (tmp_path / KEY).write_bytes(whole)
    assert cache.load(KEY) == SECTIONS
    other = KEY[::-1]
    (tmp_path / other).write_bytes(whole)
    assert cache.load(other) is None, "an entry under another key"


def test_damaged_entries_are_replaced(tmp_path: Path) -> None:
    tlx.compile(ANSWER, cache=tmp_path)
    (entry,) = tmp_path.iterdir()
    whole = entry.read_bytes()
    draw = random.Random(1)
    for damaged in (b"", whole[:-1], *(mutant(whole, draw) for _ in range(6))):
        entry.write_bytes(damaged)
        assert tlx.compile(ANSWER, cache=tmp_path)["answer"](np.array([1], np.int32)) == 42
        assert list(tmp_path.iterdir()) == [entry]
        assert DiskCache(tmp_path).load(entry.name) is not None


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_entries_that_are_no_files_are_replaced(tmp_path: Path, kind: str) -> None:
    """Reading a pipe, or writing to it, may wait for ever, so another process does it."""
    if kind == "pipe":
        os.mkfifo(tmp_path / KEY)
    else:
        (tmp_path / KEY).symlink_to(os.devnull)
    use = """import sys
from tlx.api.cache import DiskCache
cache = DiskCache(sys.argv[1])
assert cache.load(sys.argv[2]) is None
cache.store(sys.argv[2], [b"one"])"""
    subprocess.run([sys.executable, "-c", use, tmp_path, KEY], check=True, timeout=HANG_S)
    assert DiskCache(tmp_path).load(KEY) == [b"one"]
    assert [path.is_symlink() for path in tmp_path.iterdir()] == [False]


def test_least_recently_used_entries_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLX_CACHE_SIZE", "5000")
    cache = DiskCache(tmp_path)
    keys = [f"{number:064x}" for number in range(6)]
    for age, name in enumerate(keys[:4]):
        cache.store(name, [bytes(1000)])
        os.utime(tmp_path / name, (100 + age, 100 + age))
    cache.load(keys[0])
    cache.store(keys[4], [bytes(1500)])
    assert {path.name for path in tmp_path.iterdir()} == {keys[0], keys[2], keys[3], keys[4]}
    assert cache.info().size <= 5000
    cache.store(keys[5], [bytes(5001)])
    assert cache.load(keys[5]) is None, "larger than the cache"
    assert cache.info().entries == 4


def test_files_of_others_stay(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    old, new = (tmp_path / f".{KEY}.{number:012x}.tmp" for number in range(2))
    old.touch()
    new.touch()
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))
    cache.store(KEY, SECTIONS)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", new.name, KEY}
    assert cache.clear().entries == 1
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt", new.name}


def test_missing_directory_is_empty(tmp_path: Path) -> None:
    assert DiskCache(tmp_path / "none").info().entries == 0
    assert DiskCache(tmp_path / "none").clear().entries == 0


def test_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """Compiles, with one warning."""
    (tmp_path / "file").touch()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            module = tlx.compile(ANSWER, cache=tmp_path / "file" / "cache")
            assert module["answer"](np.array([1], np.int32)) == 42
    seen = [str(warning.message) for warning in caught if warning.category is TlxWarning]
    assert len(seen) == 1
    assert "file/cache': Not a directory; nothing is cached" in seen[0]


MISSPELLED: Final = """
declare void @tensor_frobnicate(i32)

define i32 @answer(ptr %x) {
  %dead = icmp eq ptr %x, null
  br i1 %dead, label %a, label %b
a:
  call void @tensor_frobnicate(i32 1)
  br label %b
b:
  %v = load i32, ptr %x
  ret i32 %v
}
"""


def test_warnings_are_given_again(tmp_path: Path) -> None:
    path = tmp_path / "first.ll"
    path.write_text(MISSPELLED, encoding="utf-8")
    seen: list[set[str]] = []
    for name in ("first.ll", "first.ll", "second.ll"):
        path = path.rename(tmp_path / name)
        with pytest.warns(TlxWarning) as caught, pytest.raises(TlxError, match="tensor_frobnicate"):
            tlx.compile(path, cache=tmp_path / "cache")
        seen.append({str(warning.message) for warning in caught})
        assert all(f"/{name}:8:3: warning: tensor_frobnicate is neither" in message for message in seen[-1])
    assert [len(messages) for messages in seen] == [1, 1, 1]
    assert DiskCache(tmp_path / "cache").info().entries == 1


def test_warnings_that_are_errors(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(TlxWarning, match="tensor_frobnicate"):
                tlx.compile(MISSPELLED, cache=tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to any directory")
def test_read_only_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.warns(TlxWarning, match="Permission denied"):
        assert tlx.compile(ANSWER, cache=tmp_path)["answer"](np.array([1], np.int32)) == 42


WORKER: Final = """
import random, sys
from tlx.api.cache import DiskCache
cache = DiskCache(sys.argv[1])
draw = random.Random(int(sys.argv[2]))
hits = 0
for _ in range(300):
    number = draw.randrange(12)
    sections = [b"%d" % number, bytes([number]) * 3000 * number]
    found = cache.load(f"{number:064x}")
    assert found in (None, sections), "torn entry"
    hits += found is not None
    if found is None or draw.random() < 0.3:
        cache.store(f"{number:064x}", sections)
    if draw.random() < 0.02:
        cache.clear()
print(hits)
"""


def test_many_processes(tmp_path: Path) -> None:
    """They store, load, evict and clear the same entries; nobody sees half an entry, nothing is left behind."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TLX_CACHE_SIZE": "150K"}
    command = [sys.executable, "-W", "error", "-c", WORKER, str(tmp_path)]
    pipe = subprocess.PIPE
    workers = [subprocess.Popen([*command, str(seed)], env=environment, stdout=pipe) for seed in range(8)]
    outputs = [worker.communicate(timeout=HANG_S)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sum(map(int, outputs)) > 100
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert DiskCache(tmp_path).info().size <= 150 << 10
