"""The target: assembly that NVIDIA's assembler accepts, the launch table, errors, and what the emulator finds."""

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tlx
from tests.nvidia.emulator import COMPILER, EmulatedDevice, OnDevice
from tests.nvidia.kernels.test_attention import attention
from tests.nvidia.kernels.test_convolutions import convolved
from tests.nvidia.kernels.test_products import bytes_product, matmul
from tests.nvidia.programs import function, grid_of, lowered, normal, tensor, typed, with_grids
from tlx.api.arguments import ArgumentError
from tlx.api.device.arrays import OwnedArray
from tlx.api.device.functions import DeviceFunction
from tlx.api.signatures import Prototype
from tlx.diagnostics import LoweringError, TlxError
from tlx.ir.types import VOID
from tlx.legalize.nvidia.driver import NvidiaDevice
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.target.grid_unit import DeviceArray, Temporaries
from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument, TensorMap, from_json, table_of, to_json

ROOT = Path(__file__).parents[3]
TRIPLE = "nvptx64-nvidia-cuda"
WITH_MAPS = replace(grid_of(with_grids(), "sm_90a").costs, tensor_map_cycles=-(10**6))
"""Costs of a machine whose copies by tensor maps are always faster."""
EXAMPLES = {name: (ROOT / "examples/ir" / f"{name}.ll").read_text() for name in ("matmul", "mlp", "softmax")}
PROGRAMS = {
    **EXAMPLES,
    "large": matmul(2048, 2048, 512, "bfloat", "bfloat"),
    "edges": matmul(1500, 1100, 70, "half", "float", "tn"),
    "double": matmul(100, 60, 40, "double", "double", "nt"),
    "few-tiles": matmul(100, 120, 8192, "bfloat", "float"),
    "bytes": bytes_product("smma", 1024, 1024, 512, "nn"),
    "mixed-bytes": bytes_product("usmma", 1024, 1024, 512, "nt"),
    "convolution": convolved("bfloat", (8, 64, 58, 58), (64, 64, 3, 3), (0, 2, 3, 1))[0],
    "attention": attention((16, 1024, 1024, 64, 64), reassociated=True),
    "exact-attention": attention((16, 1000, 1000, 64, 64)),
    "channels-first": convolved("half", (2, 24, 19, 19), (32, 24, 3, 3), (0, 1, 2, 3), 2)[0],
}


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembler_accepts_the_code(name: str, processor: str, tmp_path: Path) -> None:
    text = lowered(PROGRAMS[name], processor)
    assert "llvm.tensor" not in text
    said = assembled(text, processor, tmp_path)
    packed = (name, processor) == ("softmax", "sm_100a")  # arithmetic of two floats takes pairs of registers
    assert packed or not re.search(r"[1-9]\d* bytes spill", said), said


def assembled(text: str, processor: str, folder: Path) -> str:
    """What the assembler says about kernels, which it must accept."""
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("ptxas is not installed (it is in the package nvidia-cuda-nvcc)")
    path = folder / "kernels.ptx"
    path.write_bytes(emit_code(with_platform(text, TRIPLE), "asm", 3, processor))
    command = [assembler, "-v", f"-arch={processor}", str(path), "-o", str(folder / "kernels.cubin")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "warning" not in result.stderr.lower()
    assert "serialized" not in result.stderr, result.stderr
    return result.stderr


MULTIPROCESSORS, REGISTERS = 132, 65536


@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("depth", [64, 128, 256])
def test_a_multiprocessor_has_registers_for_its_blocks(columns: int, depth: int, tmp_path: Path) -> None:
    """Blocks that compute several tiles are as many as run at once."""
    text = lowered(matmul(100352, columns, depth, "bfloat", "bfloat"), "sm_90a", costs=WITH_MAPS)
    ((launch,),) = (table.launches for table in table_of(text))
    assert isinstance(launch.grid, int)
    found = re.search(r"Used (\d+) registers", assembled(text, "sm_90a", tmp_path))
    assert found
    registers = -(-int(found[1]) // 8) * 8 * launch.block
    assert launch.grid % MULTIPROCESSORS == 0
    assert launch.grid // MULTIPROCESSORS * registers <= REGISTERS


def test_blocks_copy_their_next_tiles_ahead() -> None:
    """Each block computes six tiles of one stage."""
    (table,) = table_of(lowered(matmul(100352, 256, 64, "bfloat", "bfloat"), "sm_90a"))
    (launch,) = table.launches
    assert launch.grid == MULTIPROCESSORS
    assert launch.shared >= 4 * (128 + 256) * 64 * 2


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("name", "kernel"), [("large", "f_0_matmul"), ("attention", "f_0_attention")])
def test_llvm_19_writes_ptx(name: str, kernel: str, processor: str) -> None:
    compiler = shutil.which("llc-19")
    if compiler is None:
        pytest.skip("llc-19 is not installed")
    text = with_platform(lowered(PROGRAMS[name], processor), TRIPLE)
    command = [compiler, "-march=nvptx64", f"-mcpu={processor}", "-O2", "-o", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert f".visible .entry {kernel}(" in result.stdout
    assert ("wgmma" if processor == "sm_90a" else "mma.sync") in result.stdout


@pytest.mark.parametrize(
    ("name", "instruction"),
    [
        ("double", "mma.sync.aligned.m8n8k4.row.col.f64"),
        ("mixed-bytes", "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"),
        ("convolution", "mma.sync.aligned.m16n8k16.row.col.f32.bf16"),
    ],
)
def test_products_are_on_tensor_cores(name: str, instruction: str) -> None:
    text = with_platform(lowered(PROGRAMS[name]), TRIPLE)
    assert instruction in emit_code(text, "asm", 1, "sm_80").decode()


def test_a_convolution_is_one_product_of_all_images() -> None:
    """25,088 pixels of 64 channels: 196 tiles of 128 x 64; neither the images nor the weights are copied."""
    (table,) = table_of(lowered(PROGRAMS["convolution"], "sm_90a"))
    assert [(launch.kernel, launch.grid) for launch in table.launches] == [("f_0_matmul", 196)]
    assert table.temporaries == ()


def test_a_convolution_of_many_channels_copies_no_windows() -> None:
    text = convolved("bfloat", (32, 512, 9, 9), (512, 512, 3, 3), (0, 2, 3, 1))[0]
    (table,) = table_of(lowered(text, "sm_90a"))
    assert all("matmul" in launch.kernel for launch in table.launches)


def test_the_launch_table_lists_kernels_and_temporaries() -> None:
    text = lowered(EXAMPLES["softmax"].replace("512000", "8000").replace("512", "8"))  # too small to be fused
    (table,) = table_of(text)
    assert table.name == "softmax"
    assert table.parameters == ("ptr", "ptr")
    assert [launch.kernel for launch in table.launches] == [
        "softmax_0_max",
        "softmax_1_map",
        "softmax_2_add",
        "softmax_3_map",
    ]
    assert max(table.temporaries) >= 8 * 1000 * 4
    assert table.launches[0].arguments[1] == LaunchArgument(parameter=0, offset=0)
    assert from_json(to_json([table])) == [table]
    assert "define void @softmax(" not in text


def test_softmax_is_one_kernel_without_temporaries() -> None:
    (table,) = table_of(lowered(EXAMPLES["softmax"]))
    assert [launch.kernel for launch in table.launches] == ["softmax_0_rows"]
    assert table.temporaries == ()


def test_equal_trees_share_a_kernel() -> None:
    m = 64
    operands = tensor("a", "x", "float", (m, m)) + tensor("b", "y", "float", (m, m))
    body = f"""{operands}
  %p = call <{m * m} x float> @llvm.tensor.matmul(token %a, token %b)
{typed("t", "p", "float", (m, m))}
  %q = call <{m * m} x float> @llvm.tensor.matmul(token %t, token %b)
  store <{m * m} x float> %q, ptr %c
"""
    (table,) = table_of(lowered(function(["x", "y", "c"], body)))
    assert len({launch.kernel for launch in table.launches}) == 1
    assert len(table.launches) == 2


def test_a_branch_is_refused_with_its_place() -> None:
    text = function(["x", "y", "i1 %c"], tensor("a", "x", "float", (4, 4)))
    body = """  br i1 %c, label %then, label %end
then:
  %v = call <16 x float> @llvm.tensor.exp(token %a)
  store <16 x float> %v, ptr %y
  br label %end
end:
"""
    with pytest.raises(LoweringError, match="a branch that depends on run-time values cannot be launched") as caught:
        lowered(text.replace("  ret void", f"{body}  ret void"))
    assert "choose by a select of vectors" in str(caught.value)
    assert "test.ll:" in caught.value.render()


def test_a_result_is_refused() -> None:
    text = matmul(8, 8, 8, "float", "float").replace("define void", "define i32").replace("ret void", "ret i32 0")
    with pytest.raises(LoweringError, match="a result that is returned cannot be launched"):
        lowered(text)


def test_a_check_of_an_argument_is_refused() -> None:
    body = f"""  %bad = icmp slt i32 %n, 0
  br i1 %bad, label %trap, label %go
trap:
  call void @llvm.trap()
  unreachable
go:
{tensor("a", "x", "float", (4, 8))}
  %v = call <32 x float> @llvm.tensor.exp(token %a)
  store <32 x float> %v, ptr %y
"""
    with pytest.raises(LoweringError, match="a branch that depends on run-time values cannot be launched"):
        lowered(f"declare void @llvm.trap()\n{function(['x', 'y', 'i32 %n'], body)}")


def test_temporaries_on_the_heap_become_those_of_the_table() -> None:
    """Stage 1 checks that they were allocated, which the host of a launch does by itself."""
    m = 2048
    body = f"""{tensor("a", "x", "float", (m, m))}
  %p = call <{m * m} x float> @llvm.tensor.matmul(token %a, token %a)
{typed("t", "p", "float", (m, m))}
  %q = call <{m * m} x float> @llvm.tensor.matmul(token %t, token %a)
{typed("u", "q", "float", (m, m))}
  %r = call <{m * m} x float> @llvm.tensor.matmul(token %u, token %t)
  store <{m * m} x float> %r, ptr %y
"""
    (table,) = table_of(lowered(function(["x", "y"], body)))
    assert sum(table.temporaries) >= 2 * 4 * m * m


def test_a_call_is_refused() -> None:
    body = f"""  %u = call <4 x float> @user(<4 x float> zeroinitializer)
{tensor("a", "x", "float", (4, 8))}
  %v = call <32 x float> @llvm.tensor.exp(token %a)
  store <32 x float> %v, ptr %y
"""
    with pytest.raises(LoweringError, match="a call of @user cannot be launched"):
        lowered(f"declare <4 x float> @user(<4 x float>)\n{function(['x', 'y'], body)}")


def test_an_element_as_a_number_is_refused_with_its_place() -> None:
    body = f"""{tensor("a", "x", "float", (4, 8))}
  %v = call <32 x float> @llvm.tensor.exp(token %a)
  %s = extractelement <32 x float> %v, i32 3
  store float %s, ptr %y
"""
    with pytest.raises(LoweringError, match="an element of a tensor, as a number, cannot be launched") as caught:
        lowered(function(["x", "y"], body))
    assert "store or broadcast a tensor of one element instead" in str(caught.value)
    assert "test.ll:5:3: error:" in caught.value.render()


def test_a_temporary_that_different_loops_write_is_refused() -> None:
    """Iterations of the inner loop would share what the outer one gives each of its iterations."""
    dims = "<2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"

    def copy(number: int, source: str, to: str) -> str:
        return f"""
  %r{number} = call token @llvm.tensor.load(ptr elementtype(float) %{source}, {dims}, <2 x i32> <i32 0, i32 32>)
  %v{number} = call <32 x float> @llvm.tensor.tovector(token %r{number})
  %t{number} = call token @llvm.tensor.typeinfo(<32 x float> %v{number}, {dims})
  call void @llvm.tensor.store(ptr %{to}, token %t{number}, <2 x i32> <i32 0, i32 32>)"""

    text = f"""define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %z) {{
entry:
  %t = alloca [32 x float], align 64
  br label %i
i:
  %row = phi i64 [ 0, %entry ], [ %row.next, %latch ]
  %first = mul i64 %row, 128
  %xi = getelementptr float, ptr %x, i64 %first
{copy(0, "xi", "t")}
  br label %j
j:
  %column = phi i64 [ 0, %i ], [ %column.next, %j ]
  %offset = mul i64 %column, 32
  %at = add i64 %first, %offset
  %yj = getelementptr float, ptr %y, i64 %at
  %zj = getelementptr float, ptr %z, i64 %at
{copy(1, "yj", "t")}{copy(2, "t", "zj")}
  %column.next = add i64 %column, 1
  %more = icmp slt i64 %column.next, 4
  br i1 %more, label %j, label %latch, !tlx.independent !{{}}
latch:
  %row.next = add i64 %row, 1
  %again = icmp slt i64 %row.next, 3
  br i1 %again, label %i, label %end, !tlx.independent !{{}}
end:
  ret void
}}
"""
    with pytest.raises(LoweringError, match="a temporary that different loops write cannot be launched"):
        lower_text(text, target="nvidia", options=Options(start_after="to-2d"))


@pytest.mark.parametrize("processor", ["sm_86", "sm_89", "sm_120"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_blocks_fit_the_shared_memory_of_small_multiprocessors(name: str, processor: str) -> None:
    tables = table_of(lowered(PROGRAMS[name], processor))
    assert max(launch.shared for table in tables for launch in table.launches) <= 99 << 10


def fake_driver(*attributes: int) -> SimpleNamespace:
    """The driver of a device with some attributes, as cuda-bindings has it."""

    def done(*_: Any) -> tuple[int, int]:
        return 0, 0

    def attribute(kind: int, _: int) -> tuple[int, int]:
        return 0, attributes[kind]

    names = ("COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
    return SimpleNamespace(
        CUmemPoolProps=lambda: SimpleNamespace(location=SimpleNamespace()),
        CUmemAllocationType=SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED=1),
        CUmemLocationType=SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE=1),
        CUmemPool_attribute=SimpleNamespace(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD=4),
        cuuint64_t=int,
        cuMemPoolCreate=done,
        cuMemPoolSetAttribute=done,
        cuMemPoolDestroy=done,
        CUdevice_attribute=SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": k for k, name in enumerate(names)}),
        cuInit=done,
        cuDeviceGet=done,
        cuDeviceGetAttribute=attribute,
        cuDevicePrimaryCtxRetain=done,
    )


@pytest.mark.parametrize(
    ("major", "minor", "kibibytes", "processor"),
    [(8, 0, 163, "sm_80"), (8, 6, 99, "sm_86"), (8, 9, 99, "sm_86"), (9, 0, 227, "sm_90a"), (12, 0, 99, "sm_86")],
)
def test_code_is_for_the_shared_memory_of_the_device(major: int, minor: int, kibibytes: int, processor: str) -> None:
    assert NvidiaDevice(fake_driver(major, minor, kibibytes << 10)).processor == processor


def recorded(calls: list[str], name: str, *results: Any) -> Callable[..., tuple[Any, ...]]:
    """A function of the driver that succeeds with these results, and adds its name to the calls."""

    def called(*_: Any) -> tuple[Any, ...]:
        calls.append(name)
        return 0, *results

    return called


def driver_with_contexts(current: int) -> tuple[SimpleNamespace, list[str]]:
    """A driver whose primary context is 7, and the names of the functions that were called."""
    calls: list[str] = []
    function = partial(recorded, calls)
    driver = fake_driver(8, 0, 163 << 10)
    driver.cuDevicePrimaryCtxRetain = function("retain", 7)
    driver.cuCtxGetCurrent = function("get", current)
    driver.cuCtxPushCurrent, driver.cuCtxPopCurrent = function("push"), function("pop", 7)
    driver.cuModuleLoadDataEx, driver.cuLaunchKernel = function("load", 1), function("launch")
    driver.cuModuleUnload = function("unload")
    driver.CUjit_option = SimpleNamespace(CU_JIT_ERROR_LOG_BUFFER=0, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=1)
    return driver, calls


@pytest.mark.parametrize(("current", "calls"), [(7, ["get"]), (0, ["get", "push", "pop"]), (9, ["get", "push", "pop"])])
def test_a_call_leaves_the_current_context_as_it_was(current: int, calls: list[str]) -> None:
    driver, called = driver_with_contexts(current)
    code = NvidiaDevice(driver).load("", [])
    called.clear()
    DeviceFunction(Prototype("f", VOID, ()), FunctionLaunches("f", (), (), ()), code)()
    assert called == calls


def test_an_array_of_another_device_is_refused() -> None:
    class OnSecondDevice:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    driver, _ = driver_with_contexts(7)
    code = NvidiaDevice(driver).load("", [])
    with pytest.raises(TlxError, match="the array is on device 1, and code runs on device 0; copy it there first"):
        code.array(OnSecondDevice(), 0)


def driver_that_captures() -> tuple[SimpleNamespace, list[str]]:
    """A driver that records graphs, and the names of the functions that concern them."""
    driver, _ = driver_with_contexts(7)
    calls: list[str] = []
    function = partial(recorded, calls)
    driver.cuStreamCreate, driver.cuStreamDestroy = function("create", 3), function("destroy stream")
    driver.cuStreamBeginCapture, driver.cuStreamEndCapture = function("begin"), function("end", 4)
    driver.cuGraphInstantiate, driver.cuGraphDestroy = function("instantiate", 5), function("destroy graph")
    driver.cuGraphLaunch, driver.cuGraphExecDestroy = function("launch"), function("destroy")
    driver.CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    driver.CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    driver.cuThreadExchangeStreamCaptureMode = recorded([], "", 0)
    return driver, calls


def test_a_graph_is_destroyed_with_the_captured_call() -> None:
    driver, calls = driver_that_captures()
    code = NvidiaDevice(driver).load("", [])
    function = DeviceFunction(Prototype("f", VOID, ()), FunctionLaunches("f", (), (), ()), code)
    call = function.captured()
    call()
    del call
    assert calls == ["create", "begin", "end", "destroy stream", "instantiate", "destroy graph", "launch", "destroy"]


@pytest.mark.parametrize("graph", [4, None])
def test_an_error_while_a_call_is_captured_is_the_one_reported(graph: int | None) -> None:
    def refused(stream: int) -> None:
        raise TlxError(f"no memory in stream {stream}")

    driver, calls = driver_that_captures()
    driver.cuStreamEndCapture = lambda _: (0, graph) if graph else (901, None)  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(TlxError, match="no memory in stream 3"):
        NvidiaDevice(driver).load("", []).capture(refused)
    assert calls == ["create", "begin", *(["destroy graph"] if graph else []), "destroy stream"]


class SmallMemory:
    """A device with memory for one temporary."""

    has_default_stream = True

    def __init__(self) -> None:
        self.allocated: list[int] = []

    def array(self, value: object, stream: int) -> DeviceArray | None: ...

    def address_and_layout(self, value: object, stream: int) -> tuple[int, Hashable] | None: ...

    def wait_for_stream(self, stream: int, other: int) -> None: ...

    def wait_for_event(self, event: int, stream: int) -> None: ...

    def record_event(self, event: int, stream: int) -> None: ...

    def allocate(self, size: int, stream: int) -> int:
        del stream
        if self.allocated:
            raise TlxError("out of memory")
        self.allocated.append(size)
        return size

    def free(self, address: int, stream: int) -> None:
        del stream
        self.allocated.remove(address)

    def reserve(self, sizes: tuple[int, ...], stream: int, *, captured: bool) -> Temporaries:  # noqa: ARG002
        return Temporaries((self.allocate(sum(sizes), stream),), sum(sizes))

    def release(self, temporaries: Temporaries, stream: int) -> None:
        self.free(temporaries.addresses[0], stream)

    def upload(self, address: int, host: int, size: int, stream: int) -> None: ...

    def download(self, host: int, address: int, size: int, stream: int) -> None: ...

    def synchronize(self, stream: int) -> None: ...

    def copy(self, address: int, source: int, size: int, stream: int) -> None: ...

    def time(self, work: Callable[[], object]) -> float:
        work()
        return 1.0

    def tensor_map(self, tensor_map: TensorMap, address: int) -> bytes: ...

    def launch(self, launch: Launch, blocks: int, arguments: object, stream: int) -> None: ...

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def is_capturing(self, stream: int) -> bool: ...

    def capture(self, work: Callable[[int], None]) -> Callable[[int], None]:
        return work


class Broken(SmallMemory):
    """A device that fails in everything after its first error."""

    def launch(self, launch: Launch, blocks: int, arguments: object, stream: int) -> None:  # noqa: ARG002
        raise TlxError(f"kernel {launch.kernel}: an illegal address")

    def free(self, address: int, stream: int) -> None:  # noqa: ARG002
        raise TlxError("freeing: an illegal address")


def test_the_first_of_several_errors_is_reported() -> None:
    launches = FunctionLaunches("f", (), (16,), (Launch("k", 1, 32, 0, ()),))
    with pytest.raises(TlxError, match="kernel k: an illegal address"):
        DeviceFunction(Prototype("f", VOID, ()), launches, Broken())()


def test_an_array_that_could_not_be_allocated_is_not_freed() -> None:
    device = SmallMemory()
    first = OwnedArray(device, (4,), np.dtype(np.float32))
    with pytest.raises(TlxError, match="out of memory"):
        OwnedArray(device, (8,), np.dtype(np.float32))
    assert device.allocated == [16]
    del first
    assert not device.allocated


emulated = pytest.mark.skipif(COMPILER is None, reason="the emulator needs a C compiler")


def run_changed(pattern: str, replacement: str) -> None:
    """Run a product whose code was changed."""
    text = lowered(matmul(64, 64, 512, "bfloat", "float"))
    changed = re.sub(pattern, replacement, text)
    assert changed != text
    (table,) = table_of(changed)
    device = EmulatedDevice(changed)
    (launch,) = table.launches
    code = device.load(f".entry {launch.kernel}(", [table])
    addresses = [code.allocate(size, 0) for size in (64 * 64 * 4, 64 * 512 * 2, 512 * 64 * 2)]
    ones = np.ascontiguousarray(normal((64 * 512,), np.float16))
    for address in addresses[1:]:
        code.upload(address, ones.ctypes.data, ones.nbytes, 0)
    cells = [ctypes.c_void_p(address) for address in addresses]
    assert isinstance(launch.grid, int)
    code.launch(launch, launch.grid, (ctypes.c_void_p * len(cells))(*map(ctypes.addressof, cells)), 0)


@emulated
def test_a_captured_call_is_made_again() -> None:
    text = matmul(64, 64, 32, "float", "float")
    device = EmulatedDevice(lowered(text))
    function = tlx.compile(text, with_grids(find_device=lambda: device)).f
    assert isinstance(function, DeviceFunction)
    a, b, c = (np.ascontiguousarray(normal((64, 64), np.float32))[:, :n].copy() for n in (32, 64, 64))
    b = b[:32].copy()
    call = function.captured(OnDevice(a), OnDevice(b), OnDevice(c))
    a *= 2
    call()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentError, match="a captured call takes arrays of the device"):
        function.captured(a, OnDevice(b), OnDevice(c))


@emulated
def test_the_emulator_finds_a_missing_barrier() -> None:
    with pytest.raises(AssertionError, match=r"since the last barrier|which is being copied"):
        run_changed(r"  call void @llvm\.nvvm\.barrier0\(\)\n", "")


@emulated
def test_the_emulator_finds_a_missing_barrier_of_a_warp() -> None:
    with pytest.raises(AssertionError, match="since the last barrier"):
        run_changed(r"  call void @llvm\.nvvm\.bar\.warp\.sync\(i32 -1\)\n", "")


@emulated
def test_the_emulator_finds_a_missing_wait() -> None:
    with pytest.raises(AssertionError, match="which is being copied"):
        run_changed(r"wait\.group\(i32 2\)", "wait.group(i32 3)")


@emulated
def test_the_emulator_finds_an_access_outside() -> None:
    with pytest.raises(AssertionError, match="outside of the buffers"):
        run_changed(r"mul i64 (%t\.\d+), 512", r"mul i64 \1, 520")
