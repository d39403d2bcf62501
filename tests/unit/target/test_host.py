"""The best target for a machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from llvmlite.binding import get_host_cpu_features

from tlx.diagnostics import UsageError
from tlx.ir.values import Value
from tlx.legalize.x86.host import detect_features
from tlx.target import host
from tlx.target.costs.memory import Caches
from tlx.target.discovery import host_modules
from tlx.target.installed import targets
from tlx.target.instructions.dots import Dot
from tlx.target.lookup import find_target
from tlx.target.target import Target


def no_code(*_: object) -> Value:
    pytest.fail("nothing is emitted here")


BF16 = Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "avx512bf16", no_code)
PLAIN = Target("plain", "any")
WIDE = Target(
    "wide",
    "wide",
    features=("+avx512f", "+avx512bf16"),
    vector_bytes=64,
    dots=(BF16,),
    requires=("avx512f",),
)
TILES = Target("tiles", "tiles", vector_bytes=16, matrix=find_target("amx").matrix, requires=("amx_tile", "avx512f"))
ALL = (PLAIN, WIDE, TILES)


def best(*flags: str) -> Target:
    return host.best_target(ALL, frozenset(flags), Caches(l1=1, l2=2, l3=3))


def test_the_most_capable_fitting_target_wins() -> None:
    assert best().name == "plain"
    assert best("avx512f").name == "wide"
    assert best("avx512f", "amx_tile").name == "tiles"


def test_features_are_those_of_the_machine() -> None:
    assert best("avx512f").features == ("+avx512f",)
    assert best("avx512f").usable_dots == ()
    assert best("avx512f", "avx512_bf16").features == ("+avx512f", "+avx512bf16")
    assert best("avx512f", "avx512_bf16").usable_dots == (BF16,)


def test_caches_are_those_of_the_machine() -> None:
    assert best().caches == Caches(1, 2, 3)


@pytest.mark.parametrize(("text", "count"), [("0-7,16-23", 16), ("3", 1), ("0-1", 2), ("", 1), (None, 1)])
def test_processors_that_share_the_last_cache(monkeypatch: pytest.MonkeyPatch, text: str | None, count: int) -> None:
    """As Linux lists them; where it does not, there is one."""
    replace_file(monkeypatch, "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list", text)
    assert host.host_caches().l3_sharers == count


def replace_file(monkeypatch: pytest.MonkeyPatch, path: str, text: str | None) -> None:
    """Have a file of the system contain some text; None: it does not exist."""
    read = Path.read_text

    def replaced(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
        if str(self) != path:
            return read(self, encoding, errors)
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(Path, "read_text", replaced)


@pytest.fixture
def fresh_flags() -> Iterator[None]:
    """The processor's features are read again, in the test and after it."""
    host.cpu_flags.cache_clear()
    yield
    host.cpu_flags.cache_clear()


def llvm_flags() -> frozenset[str]:
    """The features that LLVM finds."""
    features = cast("dict[str, bool]", get_host_cpu_features())
    return frozenset(name for name, present in features.items() if present)


def test_no_target_fits() -> None:
    with pytest.raises(UsageError, match="supports no target"):
        host.best_target([WIDE], frozenset(), Caches())


def test_this_machine_has_a_target() -> None:
    assert host.native_target().name in targets()
    assert host.host_caches().l1 > 0


def test_native_features_agree_with_llvm() -> None:
    by_llvm = llvm_flags()
    for target in targets().values():
        assert bool(host.missing_features(target, by_llvm)) == bool(host.missing_features(target, host.cpu_flags()))


def test_unlisted_features_agree_with_llvm() -> None:
    actual = detect_features()
    assert actual == {name for name in ("amx-fp16", "avxneconvert", "avxvnniint8") if name in llvm_flags()}
    assert actual <= host.cpu_flags()


ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 \
asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs dcpodp sve2 sveaes svebitperm flagm2 frint svei8mm i8mm bf16
CPU implementer\t: 0x41
"""
RISCV = """processor\t: 0
hart\t\t: 0
isa\t\t: rv64imafdcv_zicsr_zifencei_zba_zbb_zvfh
mmu\t\t: sv48

processor\t: 1
isa\t\t: rv64gc_zba_zbb
mmu\t\t: sv48
"""


@pytest.mark.parametrize(
    ("text", "have", "lack"),
    [
        (
            ARM,
            "neon fp-armv8 fullfp16 fp16fml dotprod i8mm bf16 sve sve2 lse rcpc crc rdm complxnum jsconv sve2-bitperm",
            "sme sve2p1 sve2-sha3 f32mm mte",
        ),
        (RISCV, "i m a f d c zicsr zifencei zba zbb", "v zvfh zbs"),
        (RISCV.partition("\n\n")[0], "v zvfh", "zvfbfmin"),
        ("processor: 0\nisa: rv64imafdczba_zbb\n", "c zba zbb", "v"),
    ],
)
@pytest.mark.usefixtures("fresh_flags")
def test_features_that_linux_lists_under_other_names(
    monkeypatch: pytest.MonkeyPatch, text: str, have: str, lack: str
) -> None:
    """LLVM's names; of several processors, what all have."""
    replace_file(monkeypatch, "/proc/cpuinfo", text)
    flags = host.cpu_flags()
    assert [name for name in have.split() if not host.has_feature(name, flags)] == []
    assert [name for name in lack.split() if host.has_feature(name, flags)] == []


GRAVITON_2 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs"
GRAVITON_3 = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc sha3 sm3 "
    "asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng"
)
GRAVITON_4 = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc sha3 asimddp "
    "sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb paca sve2 sveaes svebitperm svesha3 flagm2 "
    "frint svei8mm svebf16 i8mm bf16 dgh rng bti"
)
GRACE = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc sha3 sm3 "
    "asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm sb paca pacg dcpodp sve2 sveaes svepmull svebitperm svesha3 "
    "svesm4 flagm2 frint svei8mm svebf16 i8mm bf16 dgh bti"
)
APPLE_M1 = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc sha3 asimddp "
    "sha512 asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg flagm2 frint"
)
APPLE_M2 = f"{APPLE_M1} i8mm bf16 bti ecv"
POWER = """processor\t: 0
cpu\t\t: POWER{} (architected), altivec supported
clock\t\t: 3425.000000MHz
revision\t: 2.0 (pvr 0080 0200)

processor\t: 1
cpu\t\t: POWER{} (architected), altivec supported
"""
SIFIVE_U74 = "processor\t: 0\nhart\t\t: 2\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: sifive,bullet0\n"
SPACEMIT_K1 = """processor\t: 0
hart\t\t: 0
model name\t: Spacemit(R) X60
isa\t\t: rv64imafdcv_zicbom_zicboz_zicntr_zicond_zicsr_zifencei_zihintpause_zihpm_zfh_zfhmin_zca_zcd_zba_zbb_zbc_zbs_\
zkt_zve32f_zve32x_zve64d_zve64f_zve64x_zvfh_zvfhmin_zvkt_sscofpmf_sstc_svinval_svnapot_svpbmt
mmu\t\t: sv39
"""


@pytest.mark.parametrize(
    ("text", "architecture", "name", "features"),
    [
        (f"Features\t: {GRAVITON_2}\n", "aarch64", "neon", "neon fullfp16 dotprod"),
        (f"Features\t: {GRAVITON_3} sve256\n", "aarch64", "sve256", "sve neon fullfp16 bf16 i8mm"),
        (f"Features\t: {GRAVITON_4} sve128\n", "aarch64", "sve", "sve neon fullfp16 bf16 i8mm"),
        (f"Features\t: {GRACE} sve128\n", "aarch64", "sve", "sve neon fullfp16 bf16 i8mm"),
        (f"Features\t: {APPLE_M1}\n", "aarch64", "neon", "neon fullfp16 dotprod"),
        (f"Features\t: {APPLE_M2}\n", "aarch64", "neon", "neon fullfp16 dotprod bf16 i8mm"),
        (POWER.format(8, 8), "ppc64le", "vsx", "vsx altivec power8-altivec power8-vector direct-move"),
        (POWER.format(9, 9), "ppc64le", "vsx", "vsx altivec power8-altivec power8-vector direct-move power9-vector"),
        (POWER.format(7, 7), "ppc64", "generic", "altivec vsx"),
        (POWER.format(10, 10), "ppc64le", "mma", "vsx altivec power8-vector power9-vector power10-vector mma"),
        (POWER.format(10, 9), "ppc64le", "vsx", "vsx altivec power8-vector"),
        (SIFIVE_U74, "riscv64", "generic", "m a f d c"),
        (SPACEMIT_K1, "riscv64", "rvv", "v m a f d zvfhmin"),
        (SPACEMIT_K1.replace("_zvkt", "_zvkt_zvl128b_zvl256b"), "riscv64", "rvv256", "v m a f d zvfhmin"),
    ],
)
@pytest.mark.usefixtures("fresh_flags")
def test_native_on_real_machines(
    monkeypatch: pytest.MonkeyPatch, text: str, architecture: str, name: str, features: str
) -> None:
    """The target, and no feature that the machine lacks; lengths of vectors are not in the file, but found besides."""
    replace_file(monkeypatch, "/proc/cpuinfo", text)
    flags = host.cpu_flags()
    best = host.best_target(targets().values(), flags, Caches(), architecture)
    have = {feature[1:] for feature in best.features if feature[0] == "+"}
    assert best.name.startswith(name)
    assert set(features.split()) <= have
    assert [feature for feature in sorted(have) if not host.has_feature(feature, flags)] == []


def test_plain_vectors_have_the_features_of_the_machine() -> None:
    """LLVM uses features that no target names."""
    generic = targets()["generic"]
    arm = host.best_target([generic], frozenset("fp asimd asimdhp asimddp bf16".split()), Caches(), "aarch64")
    assert arm.features == ("+neon", "+fp-armv8", "+fullfp16", "+dotprod", "+bf16")
    assert (arm.vector_bytes, arm.registers) == (16, 32)
    riscv = host.best_target([generic], frozenset("imafdcv"), Caches(), "riscv64")
    assert riscv.features == ("+m", "+a", "+f", "+d", "+c", "+v")
    assert host.best_target([generic], frozenset("imafdcv"), Caches(), "x86_64").features == ()


@pytest.mark.parametrize("name", [name for name, target in targets().items() if target.detection.find_features])
def test_features_that_targets_detect_are_facts_of_the_machine(name: str) -> None:
    """The key of cached code has what the architecture's module for this machine detects."""
    detect = targets()[name].detection.find_features
    assert detect is not None
    function = detect.func if isinstance(detect, partial) else detect
    assert function.__module__ in host_modules(targets()[name].triples[0])
    assert detect() <= importlib.import_module(function.__module__).detect_features()
