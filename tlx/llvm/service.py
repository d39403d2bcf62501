"""The LLVM side of `tlx.llvm.process`: a script that answers requests with llvmlite.

Requests and replies are lines of JSON on standard input and output. Large data (a module's text, an object file) is in
the bulk file, which both sides have open; `size` is its length. A reply repeats the `number` of its request.

The script imports nothing of TLX, so that it starts in a few hundredths of a second. It may crash without harm. It
parses and verifies texts by calling llvmlite's shared library directly: importing `llvmlite.binding` takes three times
as long as loading LLVM, and most processes do nothing else.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final

_LARGE: Final = 4 << 20
_DROP_SECONDS: Final = 0.02
KERNEL_NAME: Final = r"tlx\.[-\w.$]+"
"""What the names of TLX's kernels match; they contain those of the program's functions."""
LARGE_KERNEL: Final = 16_000
"""Bytes of assembly, about 200 instructions.

LLVM unrolls the loops of smaller kernels, which makes sums of rows 1.5 times as fast. With the limit it compiles an
object detector in 4.0 s, without in 7.0 s (Zen 5)."""
_STACK_SPACE: Final = re.compile(r"-A([1-9]\d*)")  # in a data layout
_HELP: Final = ("help", "cpuhelp")  # LLVM prints a list if these are given as names

# The context and module of the last request. They are freed after the reply has been sent, as that takes a while for
# large ones.
_garbage: list[Any] = []


class RejectedError(Exception):
    """LLVM rejects a module; the text is LLVM's message.

    Attributes:
        kind: "parse", "verify" or "emit".
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def _llvmlite(part: str = "") -> Any:
    """`llvmlite.binding` or one of its modules, imported at the first request that needs it."""
    return importlib.import_module(f"llvmlite.binding.{part}".rstrip("."))


@contextlib.contextmanager
def _mapped(bulk: int, size: int) -> Generator[int]:
    """Address of the first `size` bytes of the bulk file, followed by a NUL.

    LLVM reads a text once, from front to back. The pages of a large text are dropped from memory while it is read; a
    page that is still needed is mapped again from the file.
    """
    os.ftruncate(bulk, size + 1)
    text = mmap.mmap(bulk, size + 1, access=mmap.ACCESS_COPY)
    done = threading.Event()

    def drop() -> None:
        while not done.wait(_DROP_SECONDS):
            text.madvise(mmap.MADV_DONTNEED)

    dropper = threading.Thread(target=drop, daemon=True)
    if size >= _LARGE and hasattr(mmap, "MADV_DONTNEED"):
        dropper.start()
    first = ctypes.c_char.from_buffer(text)
    try:
        yield ctypes.addressof(first)
    finally:
        done.set()
        if dropper.is_alive():
            dropper.join()
        del first
        text.close()


class _Handle:
    """A pointer to an LLVM object, with the function that frees it."""

    def __init__(self, pointer: int, dispose: Callable[[int], None]) -> None:
        self.pointer = pointer
        self._dispose: Callable[[int], None] | None = dispose

    def take(self) -> int:
        """The pointer; the caller becomes its owner."""
        self._dispose = None
        return self.pointer

    def close(self) -> None:
        """Free it, unless it was taken."""
        if self._dispose is not None:
            self._dispose(self.take())


@cache
def _library() -> ctypes.CDLL:
    """The library of llvmlite, with the types of the functions that are called directly."""
    name = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}.get(sys.platform, "libllvmlite.so")
    library = ctypes.CDLL(os.path.join(sys.argv[1], "llvmlite", "binding", name))  # noqa: PTH118 (pathlib is slow)
    pointer, message = ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)
    for function, result, arguments in (
        ("ContextCreate", pointer, []),
        ("ContextDispose", None, [pointer]),
        ("ParseAssembly", pointer, [pointer, pointer, message]),
        ("VerifyModule", ctypes.c_int, [pointer, message]),
        ("DisposeModule", None, [pointer]),
        ("DisposeString", None, [ctypes.c_char_p]),
    ):
        symbol = library[f"LLVMPY_{function}"]
        setattr(library, f"LLVMPY_{function}", symbol)
        symbol.restype, symbol.argtypes = result, arguments
    return library


def _take_message(message: ctypes.c_char_p) -> str:
    """The text of a message that LLVM allocated, which is freed; empty if there is none."""
    text = (message.value or b"").decode(errors="replace")
    _library().LLVMPY_DisposeString(message)
    return text


def _parse(bulk: int, size: int) -> tuple[_Handle, _Handle]:
    """The module whose text is in the bulk file, and its context."""
    library = _library()
    message = ctypes.c_char_p()
    context = _Handle(library.LLVMPY_ContextCreate(), library.LLVMPY_ContextDispose)
    _garbage.append(context)
    with _mapped(bulk, size) as address:
        parsed = library.LLVMPY_ParseAssembly(context.pointer, address, ctypes.byref(message))
    if rejected := _take_message(message):
        raise RejectedError("parse", rejected)
    module = _Handle(parsed, library.LLVMPY_DisposeModule)
    _garbage.append(module)
    return module, context


def _verify(module: _Handle) -> None:
    message = ctypes.c_char_p()
    broken = _library().LLVMPY_VerifyModule(module.pointer, ctypes.byref(message))
    explanation = _take_message(message)
    if broken:
        raise RejectedError("verify", explanation)


def _module_ref(module: _Handle, context: _Handle) -> Any:
    """A module as an object of `llvmlite.binding`, which frees the module and its context."""
    ffi = _llvmlite("ffi")
    owner = _llvmlite("context").ContextRef(ctypes.cast(context.take(), ffi.LLVMContextRef))
    reference = _llvmlite("module").ModuleRef(ctypes.cast(module.take(), ffi.LLVMModuleRef), owner)
    _garbage[:] = [reference]
    return reference


def _check(bulk: int, request: dict[str, Any]) -> bytes:
    """Parse and verify a text."""
    module, _ = _parse(bulk, request["size"])
    _verify(module)
    return b""


def _disassemble(bulk: int, request: dict[str, Any]) -> bytes:
    """The text of a module given as bitcode."""
    context = _llvmlite("context")
    ffi = _llvmlite("ffi")
    module = _llvmlite("module")

    bitcode = os.pread(bulk, request["size"], 0)
    try:
        parsed = module.parse_bitcode(bitcode, context.create_context())
    except RuntimeError as error:
        raise RejectedError("parse", str(error)) from None
    with ffi.OutputString() as text:
        ffi.lib.LLVMPY_PrintModuleToString(parsed, text)
        return text.bytes


def _emit(bulk: int, request: dict[str, Any]) -> bytes:
    """Optimise a module and emit it as `kind`: ll, bc, asm or obj."""
    parsed, context = _parse(bulk, request["size"])
    _verify(parsed)
    module = _module_ref(parsed, context)
    machine = _machine(module, request)
    if match := _STACK_SPACE.search(str(machine.target_data)):
        _check_stack(module, int(match[1]))
    if request["level"] is not None and request.get("passes", True):
        module = _optimise(module, os.pread(bulk, request["size"], 0), machine, request["level"])
    kind = request["kind"]
    if kind == "ll":
        return str(module).encode()
    if kind == "bc":
        return module.as_bitcode()
    try:
        return machine.emit_assembly(module).encode() if kind == "asm" else machine.emit_object(module)
    except RuntimeError as error:
        raise RejectedError("emit", str(error)) from None


def _machine(module: Any, request: dict[str, Any]) -> Any:
    binding = _llvmlite()

    _disable_other_selectors()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.initialize_native_asmparser()  # for inline assembly, such as the system call that requests AMX tiles
    triple = request["triple"] or module.triple or binding.get_default_triple()
    target = _target(triple)
    module.triple = triple
    jit = request["jit"]
    machine = target.create_target_machine(
        cpu=request["cpu"],
        features=request["features"],
        opt=2 if request["level"] is None else request["level"],
        reloc="default" if jit else "pic",
        codemodel="jitdefault" if jit else "default",
        jit=jit,
    )
    if not module.data_layout:
        module.data_layout = str(machine.target_data)
    return machine


def _check_stack(module: Any, space: int) -> None:
    """Reject allocas in address space 0 if the machine's stack is in address space `space`."""
    for instruction in re.findall(r"(?m)= alloca .*$", str(module)):
        if f"addrspace({space})" not in instruction:
            stack = f"the stack of machines of triple '{module.triple}' is in address space {space}"
            raise RejectedError("emit", f"{stack}, but the module has '{instruction[2:]}' in address space 0")


@cache
def _disable_other_selectors() -> None:
    """Make -O0 select instructions as the other levels do. LLVM accepts an option only once.

    FastISel miscompiles results of calls whose registers differ between the calling convention and the type, such as
    `<8 x bfloat>`, `<2 x half>` and `<8 x i1>` on x86 (LLVM 19 to 22): in another block they are garbage, or LLVM
    crashes. GlobalISel, which AArch64 uses at -O0, takes minutes for some of TLX's kernels (LLVM 22).
    """
    for option in ("-fast-isel=0", "-global-isel=0"):
        _llvmlite().set_option("tlx", option)


def _unknown(_bulk: int, request: dict[str, Any]) -> bytes:
    """Those features and processors of a request that LLVM does not know, as JSON.

    All features are tested together: LLVM crashes on some without others (`+hvxv66` without a vector length).
    """
    target = _target(request["triple"])

    def warnings(**machine: str) -> str:
        return _captured_stderr(lambda: target.create_target_machine(**machine))

    feature_warnings = warnings(features=",".join(f for f in request["features"] if f[1:] not in _HELP))
    features = [
        f for f in request["features"] if f[1:] in _HELP or f"'{f}' is not a recognized feature" in feature_warnings
    ]
    cpus = [cpu for cpu in request["cpus"] if cpu in _HELP or "is not a recognized processor" in warnings(cpu=cpu)]
    return json.dumps({"features": features, "cpus": cpus}).encode()


def _processors_and_features(_bulk: int, request: dict[str, Any]) -> bytes:
    """LLVM's list of processors and features, which it prints only once in a process."""
    target = _target(request["triple"])
    return _captured_stderr(lambda: target.create_target_machine(features="+help")).encode()


def _target(triple: str) -> Any:
    """LLVM's target for a triple; an empty triple is that of this machine."""
    binding = _llvmlite()
    binding.initialize_all_targets()
    try:
        return binding.Target.from_triple(triple or binding.get_default_triple())
    except RuntimeError as error:
        raise RejectedError("emit", str(error)) from None


def _captured_stderr(run: Callable[[], Any]) -> str:
    """What a function writes to standard error."""
    start = os.lseek(2, 0, os.SEEK_END)
    run()
    text = os.pread(2, os.fstat(2).st_size - start, start)
    os.ftruncate(2, start)
    os.lseek(2, start, os.SEEK_SET)
    return text.decode(errors="replace")


def _optimise(module: Any, text: bytes, machine: Any, level: int) -> Any:
    """Run LLVM's own pipeline for -O0 to -O3; returns the optimised module, whose text was `text`.

    Large kernels of TLX are exempt, by `optnone` while the passes run: their loops are unrolled and their registers
    assigned already, and LLVM would spend most of its time there. Code generation treats them as all other functions.
    """
    binding = _llvmlite()

    large = _large_kernels(text)
    for function in module.functions:
        if function.name in large:
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")
    options = binding.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = options.slp_vectorization = level >= 2
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    if not large:
        return module
    # There is no function that removes an attribute.
    module = binding.parse_assembly(
        re.sub(r"(?m)^(attributes #\d+ = \{.*?) optnone\b", r"\1", str(module)), binding.create_context()
    )
    _garbage[:] = [module]
    return module


def _large_kernels(text: bytes) -> set[str]:
    """Names of TLX's kernels whose definitions are long; none if the module has functions with `optnone` already."""
    if b"optnone" in text:
        return set()
    kernels = re.finditer(rf"(?m)^define internal [^@\n]*@({KERNEL_NAME})\(".encode(), text)
    return {kernel[1].decode() for kernel in kernels if text.find(b"\n}", kernel.end()) - kernel.end() >= LARGE_KERNEL}


_Operation = Callable[[int, dict[str, Any]], bytes]
_OPERATIONS: Final[dict[str, _Operation]] = {
    "check": _check,
    "disassemble": _disassemble,
    "emit": _emit,
    "known": _processors_and_features,
    "unknown": _unknown,
}


def _answer(bulk: int, request: dict[str, Any]) -> dict[str, Any]:
    try:
        result = _OPERATIONS[request["do"]](bulk, request)
    except RejectedError as error:
        return {"rejected": error.kind, "message": str(error)}
    os.ftruncate(bulk, len(result))
    _write(bulk, result)
    return {"size": len(result)}


def _write(bulk: int, data: bytes) -> None:
    view = memoryview(data)
    done = 0
    while done < len(view):
        done += os.pwrite(bulk, view[done:], done)


def _collect_garbage() -> None:
    """Free the last module; glibc returns the memory to the system only on request."""
    while _garbage:
        _garbage.pop().close()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _serve(bulk: int, options: list[str]) -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what LLVM prints is part of its errors
    if options:
        binding = _llvmlite()

        for option in options:
            binding.set_option("tlx", option)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["seconds"]:
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])  # ends the process, whatever LLVM is doing
        replies.write(json.dumps({"number": request["number"], **_answer(bulk, request)}) + "\n")
        if request["seconds"]:
            signal.setitimer(signal.ITIMER_PROF, 0)
        replies.flush()
        _collect_garbage()


if __name__ == "__main__":
    sys.path[:0] = [sys.argv[1]]
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        _serve(int(sys.argv[2]), sys.argv[3:])
    os._exit(0)  # exiting without destructors is faster than freeing LLVM's memory
