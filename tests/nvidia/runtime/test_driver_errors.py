"""Errors of the driver name what was done, why it failed, and what helps."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.nvidia.kernels.test_products import matmul
from tests.nvidia.kernels.test_target import driver_with_contexts
from tests.nvidia.programs import lowered
from tlx.diagnostics import TlxError, UsageError
from tlx.legalize.nvidia.driver import NvidiaCode, NvidiaDevice, first_device
from tlx.target.launches import FunctionLaunches, Launch

REASONS: Final = {
    2: "out of memory",
    222: "the provided PTX was compiled with an unsupported toolchain.",
    400: "invalid resource handle",
    700: "an illegal memory access was encountered",
}
KERNEL: Final = Launch("product", 4, 128, 0, ())


def returns(*results: Any) -> Callable[..., tuple[Any, ...]]:
    """A function of the driver that returns these."""

    def function(*_: Any) -> tuple[Any, ...]:
        return results

    return function


def failing(**statuses: int) -> SimpleNamespace:
    """A driver whose functions of these names fail."""
    driver, _ = driver_with_contexts(7)

    def reason(status: int) -> tuple[int, bytes]:
        return 0, REASONS[status].encode()

    driver.cuGetErrorString, driver.cuDriverGetVersion = reason, returns(0, 12080)
    driver.cuModuleGetFunction = returns(0, 9)
    for name, status in statuses.items():
        setattr(driver, name, returns(status) if name == "cuLaunchKernel" else returns(status, None))
    return driver


def loaded(driver: SimpleNamespace) -> NvidiaCode:
    return NvidiaDevice(driver).load("", [FunctionLaunches("f", (), (), (KERNEL,))])


def message_of(work: Callable[[], object]) -> str:
    with pytest.raises(TlxError) as caught:
        work()
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "invalid resource handle"),
        (700, "an illegal memory access was encountered; kernels run after the calls that launch them, so an earlier "),
    ],
)
def test_launches(status: int, reason: str) -> None:
    """They report what earlier kernels did, too."""
    code = loaded(failing(cuLaunchKernel=status))
    message = message_of(lambda: code.launch(KERNEL, 4, ctypes.c_long(), 0x30))
    assert f"kernel product (4 blocks of 128 threads, stream 0x30): cuLaunchKernel: {reason}" in message


def test_memory() -> None:
    code = loaded(failing(cuMemAllocFromPoolAsync=2))
    message = message_of(lambda: code.allocate(4096, 0))
    assert "allocating 4096 bytes: cuMemAllocFromPoolAsync: out of memory" in message
    assert "allocating 512 bytes: cuMemAllocFromPoolAsync" in message_of(
        lambda: code.reserve((100, 200), 0, captured=False)
    )


def test_code_that_the_driver_refuses() -> None:
    """The error says which version the code is of, and the driver."""
    device = NvidiaDevice(failing(cuModuleLoadDataEx=222))
    message = message_of(lambda: device.load("//\n.version 8.6\n.target sm_100a\n", []))
    assert (
        "the driver refuses the code, PTX 8.6 for sm_100a; the device is sm_80, and the driver is for CUDA 12.8: "
        in message
    )
    assert "cuModuleLoadDataEx: the provided PTX was compiled with an unsupported toolchain." in message


def test_kernels_with_too_much_shared_memory() -> None:
    device = NvidiaDevice(failing())
    table = [FunctionLaunches("f", (), (), (Launch("product", 4, 128, 400 << 10, ()),))]
    expected = "kernel product takes 409600 bytes of shared memory; the device has 166912 for a block"
    assert expected in message_of(lambda: device.load("", table))


def test_functions_that_bindings_or_driver_do_not_have() -> None:
    driver = failing()
    code = loaded(driver)

    def not_found(*_: Any) -> Any:
        raise RuntimeError('Function "cuMemAllocFromPoolAsync" not found')

    driver.cuMemAllocFromPoolAsync = not_found
    message = message_of(lambda: code.allocate(1, 0))
    assert 'cuMemAllocFromPoolAsync: Function "cuMemAllocFromPoolAsync" not found; update NVIDIA\'s driver' in message
    del driver.cuMemAllocFromPoolAsync
    message = message_of(lambda: code.allocate(1, 0))
    assert "the installed cuda-bindings do not have this function; update them" in message


def test_processors_that_are_too_old() -> None:
    with pytest.raises(UsageError, match=r"processor 'sm_70' is too old for target nvidia .*sm_80 and later"):
        lowered(matmul(8, 8, 8, "float", "float"), "sm_70")


@pytest.mark.parametrize(("processor", "runs"), [("sm_90a", False), ("sm_86", False), ("sm_80", True), ("", True)])
def test_processors_that_the_device_is_not(processor: str, runs: bool) -> None:
    device = NvidiaDevice(failing())
    if runs:
        device.check_processor(processor)
        return
    with pytest.raises(UsageError, match=f"code for {processor} does not run on the device .*, which is sm_80"):
        device.check_processor(processor)


def lower_natively(folder: Path) -> subprocess.CompletedProcess[str]:
    """`tlx-lower --mcpu=native`."""
    (folder / "f.ll").write_text(matmul(8, 8, 8, "float", "float"))
    command = [sys.executable, "-c", "from tlx.cli import lower_main; lower_main()", str(folder / "f.ll")]
    options = ["--target=nvidia", "--mcpu=native", "--emit=asm", "-o", "-"]
    return subprocess.run([*command, *options], capture_output=True, text=True, check=False)


@pytest.mark.skipif(find_spec("cuda") is not None, reason="cuda-bindings may find a device")
def test_the_native_processor_needs_a_device(tmp_path: Path) -> None:
    assert "target nvidia runs code through the package cuda-bindings" in lower_natively(tmp_path).stderr


@pytest.mark.nvidia
def test_the_native_processor(tmp_path: Path) -> None:
    assert f".target {first_device().processor}\n" in lower_natively(tmp_path).stdout
