"""Runs lowered kernels on this CPU, by their launch table: see emulator.c."""

import _ctypes
import ctypes
import re
import shutil
import struct
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tlx.llvm.codegen import emit_code
from tlx.target.grid_unit import DeviceArray, Temporaries
from tlx.target.launches import ALIGNMENT, FunctionLaunches, Launch, TensorMap

HERE: Final = Path(__file__).parent
Array = npt.NDArray[Any]
COMPILER: Final = shutil.which("gcc") or shutil.which("cc")

_RENAMED: Final = {
    "read.ptx.sreg.tid.x": "tid",
    "read.ptx.sreg.ctaid.x": "ctaid",
    "barrier0": "barrier",
    "bar.warp.sync": "meet",
    "shfl.sync.idx.i32": "shuffle",
    "vote.ballot.sync": "ballot",
    "cp.async.commit.group": "commit",
    "cp.async.wait.group": "wait",
}
_DECLARED: Final = """
declare i32 @emu_tid()
declare i32 @emu_ctaid()
declare void @emu_barrier()
declare void @emu_meet(i32)
declare i32 @emu_shuffle(i32, i32, i32, i32)
declare i32 @emu_ballot(i32, i1 zeroext)
declare void @emu_commit()
declare void @emu_wait(i32)
declare void @emu_cp_async(ptr, ptr, i32)
declare void @emu_ldmatrix(ptr, ptr, i32)
declare void @emu_mma_bf16(ptr, ptr, ptr, ptr)
declare void @emu_mma_f16(ptr, ptr, ptr, ptr)
declare void @emu_mma_tf32(ptr, ptr, ptr, ptr)
declare void @emu_mma_ss(ptr, ptr, ptr, ptr)
declare void @emu_mma_uu(ptr, ptr, ptr, ptr)
declare void @emu_mma_su(ptr, ptr, ptr, ptr)
declare void @emu_mma_us(ptr, ptr, ptr, ptr)
declare void @emu_mma_f64(ptr, ptr, ptr, ptr)
declare void @emu_mma_wide_f64(ptr, ptr, ptr, ptr)
declare void @emu_wgmma(ptr, i32, i32, ptr, i32, i32, i32, i32)
declare void @emu_wgmma_held(ptr, i32, i32, ptr, i32, i32)
declare void @emu_wgmma_wait(i32)
declare void @emu_mbarrier_make(ptr, i32)
declare void @emu_mbarrier_arrive(ptr)
declare void @emu_mbarrier_expect(ptr, i32)
declare void @emu_mbarrier_wait(ptr, i32)
declare void @emu_box_2(ptr, ptr, i32, i32, ptr)
declare void @emu_box_3(ptr, ptr, i32, i32, i32, ptr)
declare void @emu_box_4(ptr, ptr, i32, i32, i32, i32, ptr)
declare void @emu_box_5(ptr, ptr, i32, i32, i32, i32, i32, ptr)
declare float @exp2f(float)
declare void @emu_load(ptr, i64)
declare void @emu_store(ptr, i64)
define void @nvvm.cp.async.cg.shared.global.16(ptr %to, ptr %from) {
  call void @emu_cp_async(ptr %to, ptr %from, i32 16)
  ret void
}
define void @nvvm.cp.async.cg.shared.global.16.s(ptr %to, ptr %from, i32 %n) {
  call void @emu_cp_async(ptr %to, ptr %from, i32 %n)
  ret void
}
"""


def _structure(name: str, element: str, count: int, parameters: str, before: str, call: str) -> str:
    """A function that returns some elements, which a function of the emulator writes to %out."""
    type_ = "{ " + ", ".join([element] * count) + " }"
    lines = [f"define {type_} @{name}({parameters}) {{", f"  %out = alloca {type_}", before, f"  {call}"]
    return "\n".join([*lines, f"  %r = load {type_}, ptr %out", f"  ret {type_} %r", "}", ""])


def _mma(name: str, register: str, sums: str, counts: tuple[int, int, int], kind: str) -> str:
    """The product of fragments of as many registers of A, B and C."""
    memories = [(m, t, n) for m, t, n in zip("abc", (register, register, sums), counts, strict=True)]
    lines = [f"  %{memory} = alloca [{count} x {type_}]" for memory, type_, count in memories]
    for memory, type_, count in memories:
        for i in range(count):
            lines.append(f"  %{memory}.{i}.at = getelementptr {type_}, ptr %{memory}, i64 {i}")
            lines.append(f"  store {type_} %{memory}{i}, ptr %{memory}.{i}.at")
    parameters = ", ".join(f"{type_} %{memory}{i}" for memory, type_, count in memories for i in range(count))
    call = f"call void @emu_mma_{kind}(ptr %out, ptr %a, ptr %b, ptr %c)"
    return _structure(f"nvvm.mma.{name}", sums, counts[2], parameters, "\n".join(lines), call)


def _wrappers() -> str:
    text = _DECLARED
    for order, flag in (("", 0), (".trans", 1)):
        name = f"nvvm.ldmatrix.sync.aligned.m8n8.x4{order}.b16.p3"
        text += _structure(name, "i32", 4, "ptr %p", "", f"call void @emu_ldmatrix(ptr %out, ptr %p, i32 {flag})")
    text += _mma("m16n8k16.row.col.bf16", "i32", "float", (4, 2, 4), "bf16")
    text += _mma("m16n8k16.row.col.f32.f32", "<2 x half>", "float", (4, 2, 4), "f16")
    text += _mma("m16n8k8.row.col.tf32", "i32", "float", (4, 2, 4), "tf32")
    for kind, types in (("ss", "s8"), ("uu", "u8"), ("su", "s8.u8"), ("us", "u8.s8")):
        text += _mma(f"m16n8k32.row.col.{types}", "i32", "i32", (4, 2, 4), kind)
    text += "define float @nvvm.ex2.approx.ftz.f(float %x) {\n  %r = call float @exp2f(float %x)\n  ret float %r\n}\n"
    text += "define float @nvvm.rcp.approx.ftz.f(float %x) {\n  %r = fdiv float 1.0, %x\n  ret float %r\n}\n"
    text += """define float @nvvm.saturate.f(float %x) {
  %is.above = fcmp ogt float %x, 0.0
  %above = select i1 %is.above, float %x, float 0.0
  %is.below = fcmp olt float %above, 1.0
  %r = select i1 %is.below, float %above, float 1.0
  ret float %r
}
"""
    text += _mma("m8n8k4.row.col.f64", "double", "double", (1, 1, 2), "f64")
    return text + _mma("wide", "double", "double", (4, 2, 4), "wide_f64").replace("@nvvm.mma.wide(", "@wide.doubles(")


_ACCESS: Final = re.compile(
    r"^\s*(?:%\S+ = load (?P<loaded>[^,]+), ptr (?P<source>\S+)"
    r"|store (?P<stored><[^>]*>|\w+) .*, ptr (?P<to>\S+)), align.*$"
)


_ASSEMBLY: Final = re.compile(
    r"^\s*(?:(?P<result>%\S+) = )?call (?P<type>.*?) asm sideeffect "
    r'"(?P<text>[^"]*)", "[^"]*"\((?P<args>.*)\) convergent$'
)
_PRODUCT: Final = re.compile(r"n(\d+)k\d+\.\w+\.(\w+)\.(\w+) \{[^}]*\}, \S+ \S+ 1(?:, 1, 1)?(?:, (\d), (\d))?;")
_KINDS: Final = ("bf16", "f16", "tf32", "s8", "u8", "e4m3", "e5m2")  # in emulator.c's order


def _without_assembly(line: str) -> str:
    """The line of inline PTX as calls of the emulator, through the memory %emu.sums and %emu.descriptors."""
    match = _ASSEMBLY.match(line)
    if match is None:
        return line.replace(
            "entry:", "entry:\n  %emu.sums = alloca [128 x float]\n  %emu.descriptors = alloca [16 x i64]"
        )
    text, result = match["text"], match["result"]
    if text.startswith("mma.sync.aligned.m16n8k8.row.col.f64"):
        return f"  {result} = call {match['type']} @wide.doubles({match['args']})"
    if text.startswith("fence"):
        return ""
    called = next((function for prefix, function in _CALLED.items() if prefix in text), None)
    if called is not None:
        return f"  call void @emu_{called}({match['args']})"
    if _HELD.search(text):
        return _with_held_operands(match)
    if result is None:
        return f"  call void @emu_wgmma_wait(i32 {text.removesuffix(';').split()[-1]})"
    lines = _stored_operands(match)
    products = _PRODUCT.findall(text)
    if products:
        columns, lhs, rhs, a_by_k, b_by_k = products[0]
        flags = ", ".join(f"i32 {flag}" for flag in (_KINDS.index(lhs), _KINDS.index(rhs), a_by_k or 0, b_by_k or 0))
        lines.append(
            f"  call void @emu_wgmma(ptr %emu.sums, i32 {columns}, i32 {len(products)}, ptr %emu.descriptors, {flags})"
        )
    else:
        lines.append("  call void @emu_wgmma_wait(i32 0)")
    return "\n".join([*lines, f"  {result} = load {match['type']}, ptr %emu.sums"])


_CALLED: Final = {
    "mbarrier.init": "mbarrier_make",
    "mbarrier.arrive.expect_tx": "mbarrier_expect",
    "mbarrier.arrive": "mbarrier_arrive",
    "mbarrier.try_wait": "mbarrier_wait",
    **{f"cp.async.bulk.tensor.{rank}d": f"box_{rank}" for rank in (2, 3, 4, 5)},
}
"""Functions of the emulator by the beginning of the inline PTX that they are."""


def _stored_operands(match: re.Match[str]) -> list[str]:
    """Stores of the operands of inline PTX: of descriptors, which have 64 bits, and of sums and other registers."""
    lines: list[str] = []
    arguments = match["args"].split(", ")
    for memory, element in (("sums", "i32"), ("descriptors", "i64")):
        values = (a for a in arguments if a.startswith("i64") == (element == "i64"))
        for k, value in enumerate(values):
            place = f"{match['result']}.{memory}.{k}"
            lines += [
                f"  {place} = getelementptr {element}, ptr %emu.{memory}, i64 {k}",
                f"  store {value}, ptr {place}",
            ]
    return lines


_HELD: Final = re.compile(r"n(\d+)k16\.f32\.(\w+)\.\w+ \{[^}]*\}, \{[^}]*\}, \S+ 1, 1, 1, (\d);")


def _with_held_operands(match: re.Match[str]) -> str:
    """Products whose left operand is in registers, as a call of the emulator that takes them after the sums."""
    result, products = match["result"], _HELD.findall(match["text"])
    columns, element, by_k = products[0]
    lines = _stored_operands(match)
    flags = f"i32 {int(element == 'f16')}, i32 {by_k}"
    call = f"i32 {columns}, i32 {len(products)}, ptr %emu.descriptors, {flags}"
    lines.append(f"  call void @emu_wgmma_held(ptr %emu.sums, {call})")
    return "\n".join([*lines, f"  {result} = load {match['type']}, ptr %emu.sums"])


def _checked(line: str) -> str:
    """The line of a load or store, after the call that checks it."""
    match = _ACCESS.match(line)
    if match is None:
        return line
    kind, type_, pointer = (
        ("load", match["loaded"], match["source"]) if match["loaded"] else ("store", match["stored"], match["to"])
    )
    return f"  call void @emu_{kind}(ptr {pointer}, i64 {_bytes(type_)})\n{line}"


@cache
def _bytes(type_: str) -> int:
    vector = re.fullmatch(r"<(\d+) x (\w+)>", type_)
    if vector:
        return int(vector[1]) * _bytes(vector[2])
    return {"float": 4, "double": 8, "half": 2, "bfloat": 2, "ptr": 8}.get(type_) or -(-int(type_[1:]) // 8)


def for_this_machine(ir: str) -> str:
    """The module for this CPU: the GPU's operations are calls of the emulator, and memory accesses are checked."""
    ir = re.sub(r"(?m)^(target .*|@tlx_launches = .*|!nvvm\..*|!\d+ = !\{ptr @.*|declare .*@llvm\.nvvm\..*)$", "", ir)
    ir = re.sub(r"byval\(\[\d+ x i8\]\) ", "", ir)
    ir = re.sub(r"addrspacecast (ptr.*?) to ptr( addrspace\(\d\))?", r"bitcast \1 to ptr", ir)
    ir = re.sub(r" addrspace\(\d\)", "", ir).replace("ptx_kernel ", "")
    for name, function in _RENAMED.items():
        ir = ir.replace(f"@llvm.nvvm.{name}(", f"@emu_{function}(")
    ir = ir.replace("@llvm.nvvm.", "@nvvm.")
    ir = "\n".join(map(_without_assembly, map(_checked, ir.splitlines())))
    ir = _CONSTANT.sub(r"@\1 = constant \2", ir)
    ir += "".join(
        f"\n@{_size_name(name)} = constant i64 ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i64)"
        for name, type_ in _CONSTANT.findall(ir)
    )
    return ir + _wrappers() + "".join(map(_entry, re.findall(r"(?m)^define void @(\w+)\(([^)]*)\) nounwind", ir)))


_CONSTANT: Final = re.compile(r"(?m)^@([\w.]+) = (?:[a-z_]+ )*constant (\[[^\]]*\]|\w+)")


def _size_name(constant: str) -> str:
    """The global that holds a constant's bytes."""
    return f"size.of.{constant}"


def _entry(kernel: tuple[str, str]) -> str:
    """A function that takes the kernel's arguments as cuLaunchKernel does: by a pointer to each."""
    name, parameters = kernel
    types = re.findall(r"(?:^|, )(<[^>]*>|\S+)", parameters)
    maps = [number for number, parameter in enumerate(parameters.split(", ")) if "%map" in parameter]
    lines = [f"define void @run_{name}(ptr %args) {{"]
    for i, type_ in enumerate(types):
        lines += [f"  %a{i} = getelementptr ptr, ptr %args, i64 {i}", f"  %p{i} = load ptr, ptr %a{i}"]
        lines.append(
            f"  %v{i} = getelementptr i8, ptr %p{i}, i64 0" if i in maps else f"  %v{i} = load {type_}, ptr %p{i}"
        )
    arguments = ", ".join(f"{type_} %v{i}" for i, type_ in enumerate(types))
    return "\n".join([*lines, f"  call void @{name}({arguments})", "  ret void", "}", ""])


_MEMORY: Final[dict[int, Array]] = {}
"""The memory of the device, by address."""


@cache
def _compiled_runtime() -> bytes:
    """emulator.c as an object file."""
    assert COMPILER is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "emulator.o")
        command = [COMPILER, "-O2", "-w", "-fPIC", "-c", str(HERE / "emulator.c"), "-o", str(path)]
        subprocess.run(command, check=True)
        return path.read_bytes()


@dataclass(frozen=True)
class OnDevice:
    """An array in the memory of the emulated device."""

    array: Array


class Emulator:
    """Lowered kernels, compiled for this CPU: `tlx.target.grid_unit.DeviceCode` whose memory is the process's.

    Args:
        lowered: The lowered module.
        seed: Decides about the order of blocks and threads.
    """

    has_default_stream = True
    loaded: ClassVar = weakref.WeakSet["Emulator"]()
    """Those that `unload` has not unloaded: caches of targets keep them, with the stacks of 1024 threads each."""

    def __init__(self, lowered: str, seed: int = 0) -> None:
        assert COMPILER is not None
        with tempfile.TemporaryDirectory() as folder:
            code, library = Path(folder, "kernels.o"), Path(folder, "kernels.so")
            code.write_bytes(emit_code(for_this_machine(lowered), "obj", 1))
            runtime = Path(folder, "emulator.o")
            runtime.write_bytes(_compiled_runtime())
            command = [COMPILER, "-shared", str(runtime), str(code), "-o", str(library), "-lm", "-Wl,-Bsymbolic"]
            subprocess.run(command, check=True)
            handle = _ctypes.dlopen(str(library), ctypes.DEFAULT_MODE)
            self._library = ctypes.CDLL(str(library), handle=handle)
        self.unload = weakref.finalize(self, _ctypes.dlclose, handle)
        Emulator.loaded.add(self)
        self._library.emu_launch.restype = ctypes.c_char_p
        self._constants = [
            (ctypes.addressof(ctypes.c_char.in_dll(self._library, name)), self._size_of(name))
            for name, _ in _CONSTANT.findall(re.sub(r"(?m)^@tlx_launches = .*$", "", lowered))
        ]
        self._seed = seed
        self.launched: list[str] = []
        self.events: list[str] = []
        self.streams = set[int]()

    def current(self) -> AbstractContextManager[None]:
        """Nothing."""
        return nullcontext()

    def array(self, value: object, stream: int) -> DeviceArray | None:  # noqa: ARG002
        """The array of an `OnDevice`."""
        if not isinstance(value, OnDevice):
            return None
        array = value.array
        address = int(array.ctypes.data)
        _MEMORY[address] = array.reshape(-1, order="A").view(np.uint8)
        element = {"float32": "float", "bfloat16": "bfloat", "float16": "half", "int32": "i32"}[array.dtype.name]
        return DeviceArray(address, array.shape, array.strides, element, array.itemsize, array)

    def address_and_layout(self, value: object, stream: int) -> tuple[int, Hashable] | None:  # noqa: ARG002
        """None."""
        return None

    def wait_for_stream(self, stream: int, other: int) -> None:
        """Nothing: each call waits for its kernels."""

    def wait_for_event(self, event: int, stream: int) -> None:
        """Note it."""
        self.events.append(f"wait for {event} in {stream}")

    def record_event(self, event: int, stream: int) -> None:
        """Note it."""
        self.events.append(f"record {event} in {stream}")

    def is_capturing(self, stream: int) -> bool:  # noqa: ARG002
        """Whether it is: nothing is."""
        return False

    def capture(self, work: Callable[[int], None]) -> Callable[[int], None]:
        """The work itself."""
        return work

    def _size_of(self, constant: str) -> int:
        return ctypes.c_long.in_dll(self._library, _size_name(constant)).value

    def allocate(self, size: int, stream: int) -> int:  # noqa: ARG002
        """Memory whose bytes are all ones."""
        memory = np.full(size + _ALIGNMENT, 0xFF, np.uint8)
        address = int(memory.ctypes.data) + -int(memory.ctypes.data) % _ALIGNMENT
        _MEMORY[address] = memory[address - memory.ctypes.data :][:size]
        return address

    def free(self, address: int, stream: int) -> None:  # noqa: ARG002
        """Free memory."""
        del _MEMORY[address]

    def reserve(self, sizes: tuple[int, ...], stream: int, *, captured: bool) -> Temporaries:  # noqa: ARG002
        """Memory of its own for each temporary."""
        return Temporaries(tuple(self.allocate(size, stream) for size in sizes), sum(sizes))

    def release(self, temporaries: Temporaries, stream: int) -> None:
        """Free them."""
        for address in temporaries.addresses:
            self.free(address, stream)

    def upload(self, address: int, host: int, size: int, stream: int) -> None:  # noqa: ARG002
        """Copy."""
        ctypes.memmove(address, host, size)

    def download(self, host: int, address: int, size: int, stream: int) -> None:  # noqa: ARG002
        """Copy."""
        ctypes.memmove(host, address, size)

    def synchronize(self, stream: int) -> None:
        """Nothing: everything is complete."""

    def copy(self, address: int, source: int, size: int, stream: int) -> None:  # noqa: ARG002
        """Copy."""
        ctypes.memmove(address, source, size)

    def time(self, work: Callable[[], object]) -> float:
        """The time on this CPU."""
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def tensor_map(self, tensor_map: TensorMap, address: int) -> bytes:
        """The `tensor_map` of emulator.c."""
        size = _bytes(tensor_map.element)
        rank = len(tensor_map.extents)
        longs = (
            *tensor_map.extents,
            *[0] * (_DIMENSIONS - rank),
            size,
            *tensor_map.strides,
            *[0] * (_DIMENSIONS - rank),
        )
        numbers = (*tensor_map.box, *[0] * (_DIMENSIONS - rank), rank, size, tensor_map.swizzle)
        return struct.pack(f"<Q{2 * _DIMENSIONS}q{_DIMENSIONS + 3}i", address, *longs, *numbers)

    def launch(self, launch: Launch, blocks: int, arguments: Any, stream: int) -> None:
        """Run a kernel.

        Raises:
            AssertionError: It does what a GPU must not do.
        """
        library = self._library
        library.emu_forget()
        for address, memory in _MEMORY.items():
            library.emu_buffer(ctypes.c_void_p(address), ctypes.c_long(memory.nbytes), 1)
        for address, size in self._constants:
            library.emu_buffer(ctypes.c_void_p(address), ctypes.c_long(size), 0)
        for number, argument in enumerate(launch.arguments):
            if argument.offset is not None and argument.map is None and argument.offset % ALIGNMENT == 0:
                address = ctypes.c_void_p.from_address(arguments[number]).value or 0
                assert address % ALIGNMENT == 0, f"{launch.kernel}: argument {number} is not aligned"
        entry = ctypes.cast(getattr(library, f"run_{launch.kernel}"), ctypes.c_void_p)
        seed = self._seed + len(self.launched)
        error = library.emu_launch(entry, arguments, blocks, launch.block, launch.shared, seed)
        assert not error, f"{launch.kernel}: {error.decode()}"
        self.launched.append(launch.kernel)
        self.streams.add(stream)


_ALIGNMENT: Final = 256
_DIMENSIONS: Final = 5


class EmulatedDevice:
    """A device whose code is emulated.

    Args:
        lowered: The lowered module of the assembly that it loads.
        processor: The processor that code is generated for.
        seed: As for `Emulator`.
    """

    name, library_name = "an emulator", "cpu"

    def __init__(self, lowered: str, processor: str = "sm_80", seed: int = 0) -> None:
        self.processor, self.lowered, self._seed = processor, lowered, seed
        self.assembly = ""
        self.codes: list[Emulator] = []

    def check_processor(self, processor: str) -> None:
        """Nothing: all code is emulated."""

    def load(self, assembly: str, launches: Sequence[FunctionLaunches]) -> Emulator:
        """Compile for this CPU; the assembly has all kernels."""
        self.assembly = assembly
        for launch in (launch for function in launches for launch in function.launches):
            assert f".entry {launch.kernel}(" in assembly
        self.codes.append(Emulator(self.lowered, self._seed))
        return self.codes[-1]
