"""Runs lowered kernels on this CPU, by their launch table: see emulator.c."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tlx.llvm.codegen import emit_code
from tlx.target.launches import FunctionLaunches, table_of

HERE: Final = Path(__file__).parent
Array = npt.NDArray[Any]
COMPILER: Final = shutil.which("gcc") or shutil.which("cc")

_RENAMED: Final = {
    "read.ptx.sreg.tid.x": "tid",
    "read.ptx.sreg.ctaid.x": "ctaid",
    "barrier0": "barrier",
    "cp.async.commit.group": "commit",
    "cp.async.wait.group": "wait",
}
_DECLARED: Final = """
declare i32 @emu_tid()
declare i32 @emu_ctaid()
declare void @emu_barrier()
declare void @emu_commit()
declare void @emu_wait(i32)
declare void @emu_cp_async(ptr, ptr, i32)
declare void @emu_ldmatrix(ptr, ptr, i32)
declare void @emu_mma_bf16(ptr, ptr, ptr, ptr)
declare void @emu_mma_f16(ptr, ptr, ptr, ptr)
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


def _structure(name: str, element: str, parameters: str, before: str, call: str) -> str:
    """A function that returns four elements, which a function of the emulator writes to %out."""
    type_ = "{ " + ", ".join([element] * 4) + " }"
    lines, value = [f"define {type_} @{name}({parameters}) {{", f"  %out = alloca {type_}", before, f"  {call}"], ""
    lines += [f"  %r = load {type_}, ptr %out", f"  ret {type_} %r", "}"]
    return "\n".join(lines) + value + "\n"


def _mma(name: str, register: str, kind: str) -> str:
    registers = [f"{register} %a{i}" for i in range(4)] + [f"{register} %b{i}" for i in range(2)]
    sums = [f"float %c{i}" for i in range(4)]
    lines = ["  %a = alloca [4 x i32]", "  %b = alloca [2 x i32]", "  %c = alloca [4 x float]"]
    for memory, values in (("a", registers[:4]), ("b", registers[4:]), ("c", sums)):
        for i, value in enumerate(values):
            lines.append(f"  %{memory}.{i} = getelementptr i32, ptr %{memory}, i64 {i}")
            lines.append(f"  store {value}, ptr %{memory}.{i}")
    call = f"call void @emu_mma_{kind}(ptr %out, ptr %a, ptr %b, ptr %c)"
    return _structure(f"nvvm.mma.{name}", "float", ", ".join(registers + sums), "\n".join(lines), call)


def _wrappers() -> str:
    text = _DECLARED
    for order, flag in (("", 0), (".trans", 1)):
        name = f"nvvm.ldmatrix.sync.aligned.m8n8.x4{order}.b16.p3"
        text += _structure(name, "i32", "ptr %p", "", f"call void @emu_ldmatrix(ptr %out, ptr %p, i32 {flag})")
    text += _mma("m16n8k16.row.col.bf16", "i32", "bf16")
    return text + _mma("m16n8k16.row.col.f32.f32", "<2 x half>", "f16")


_ACCESS: Final = re.compile(
    r"^(?P<line>\s*(?:%\S+ = load (?P<loaded>[^,]+), ptr (?P<source>\S+)|store (?P<stored><[^>]*>|\w+) .*, ptr (?P<to>\S+)), align.*)$"
)


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
    return {"float": 4, "double": 8, "half": 2, "bfloat": 2}.get(type_) or -(-int(type_[1:]) // 8)


def for_this_machine(ir: str) -> str:
    """The module for this CPU: the GPU's operations are calls of the emulator, and memory accesses are checked."""
    ir = re.sub(r"(?m)^(target .*|@tlx_launches = .*|!.*|declare .*@llvm\.nvvm\..*)$", "", ir)
    ir = re.sub(r"addrspacecast (ptr.*?) to ptr( addrspace\(\d\))?", r"bitcast \1 to ptr", ir)
    ir = re.sub(r" addrspace\(\d\)", "", ir).replace("ptx_kernel ", "")
    for name, function in _RENAMED.items():
        ir = ir.replace(f"@llvm.nvvm.{name}(", f"@emu_{function}(")
    ir = ir.replace("@llvm.nvvm.", "@nvvm.")
    ir = "\n".join(map(_checked, ir.splitlines()))
    return ir + _wrappers() + "".join(map(_entry, re.findall(r"(?m)^define void @(\w+)\(([^)]*)\) nounwind", ir)))


def _entry(kernel: tuple[str, str]) -> str:
    """A function that takes the kernel's arguments as cuLaunchKernel does: by a pointer to each."""
    name, parameters = kernel
    types = [parameter.split()[0] for parameter in parameters.split(", ")]
    lines = [f"define void @run_{name}(ptr %args) {{"]
    for i, type_ in enumerate(types):
        lines += [f"  %a{i} = getelementptr ptr, ptr %args, i64 {i}", f"  %p{i} = load ptr, ptr %a{i}"]
        lines.append(f"  %v{i} = load {type_}, ptr %p{i}")
    arguments = ", ".join(f"{type_} %v{i}" for i, type_ in enumerate(types))
    return "\n".join([*lines, f"  call void @{name}({arguments})", "  ret void", "}", ""])


class Emulator:
    """A lowered module, compiled for this CPU.

    Attributes:
        functions: Its functions, by name.
    """

    def __init__(self, lowered: str) -> None:
        assert COMPILER is not None
        self.functions: Mapping[str, FunctionLaunches] = {f.name: f for f in table_of(lowered)}
        with tempfile.TemporaryDirectory() as folder:
            code, library = Path(folder, "kernels.o"), Path(folder, "kernels.so")
            code.write_bytes(emit_code(for_this_machine(lowered), "obj", 1))
            command = [COMPILER, "-O2", "-w", "-shared", "-fPIC", str(HERE / "emulator.c"), str(code), "-o", str(library)]
            subprocess.run([*command, "-lm", "-Wl,-Bsymbolic"], check=True)
            self._library = ctypes.CDLL(str(library))
        self._library.emu_launch.restype = ctypes.c_char_p

    def call(self, name: str, *arguments: Array | float | int, seed: int = 0) -> None:
        """Run a function on arrays and numbers.

        Raises:
            AssertionError: A kernel does what a GPU must not do.
        """
        function, library = self.functions[name], self._library
        temporaries = [np.full(size + 256, 0xFF, np.uint8) for size in function.temporaries]
        library.emu_forget()
        addresses: list[int] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                assert argument.ctypes.data % 16 == 0
                library.emu_buffer(ctypes.c_void_p(argument.ctypes.data), ctypes.c_long(argument.nbytes), 1)
        for temporary, size in zip(temporaries, function.temporaries, strict=True):
            addresses.append(temporary.ctypes.data + -temporary.ctypes.data % 256)
            library.emu_buffer(ctypes.c_void_p(addresses[-1]), ctypes.c_long(size), 1)
        for number, launch in enumerate(function.launches):
            values: list[Any] = []
            for argument in launch.arguments:
                if argument.temporary is not None:
                    values.append(ctypes.c_void_p(addresses[argument.temporary] + (argument.offset or 0)))
                    continue
                assert argument.parameter is not None
                value = arguments[argument.parameter]
                if isinstance(value, np.ndarray):
                    values.append(ctypes.c_void_p(value.ctypes.data + (argument.offset or 0)))
                else:
                    values.append(_SCALARS[function.parameters[argument.parameter]](value))
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            entry = ctypes.cast(getattr(library, f"run_{launch.kernel}"), ctypes.c_void_p)
            error = library.emu_launch(entry, pointers, launch.grid, launch.block, launch.shared, seed + number)
            assert not error, f"{launch.kernel}: {error.decode()}"


_SCALARS: Final = {"float": ctypes.c_float, "double": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64}


def aligned(array: Array) -> Array:
    """A copy of an array at an address that is a multiple of 16."""
    memory = np.empty(array.nbytes + 16, np.uint8)
    start = -memory.ctypes.data % 16
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def arrays(*values: Sequence[Any] | Array) -> list[Array]:
    """Aligned copies of arrays."""
    return [aligned(np.asarray(value)) for value in values]
