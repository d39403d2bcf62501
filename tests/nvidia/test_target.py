"""The target: assembly that NVIDIA's assembler accepts, the launch table, errors, and what the emulator finds."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.nvidia.emulator import COMPILER, EmulatedDevice
from tests.nvidia.programs import function, lowered, normal, tensor, typed
from tests.nvidia.test_products import matmul
from tlx.diagnostics import LoweringError
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.target.launches import LaunchArgument, from_json, table_of, to_json

ROOT = Path(__file__).parents[2]
TRIPLE = "nvptx64-nvidia-cuda"
EXAMPLES = {name: (ROOT / "examples" / f"{name}.ll").read_text() for name in ("matmul", "mlp", "softmax")}
PROGRAMS = {
    **EXAMPLES,
    "large": matmul(2048, 2048, 512, "bfloat", "bfloat"),
    "edges": matmul(1500, 1100, 70, "half", "float", "tn"),
    "double": matmul(100, 60, 40, "double", "double", "nt"),
}


@pytest.mark.parametrize("processor", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembler_accepts_the_code(name: str, processor: str, tmp_path: Path) -> None:
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("ptxas is not installed (it is in the package nvidia-cuda-nvcc)")
    text = with_platform(lowered(PROGRAMS[name], processor), TRIPLE)
    assert "llvm.tensor" not in text
    path = tmp_path / "kernels.ptx"
    path.write_bytes(emit_code(text, "asm", 3, processor))
    command = [assembler, "-v", f"-arch={processor}", str(path), "-o", str(tmp_path / "kernels.cubin")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "warning" not in result.stderr.lower()
    assert not re.search(r"[1-9]\d* bytes spill", result.stderr), result.stderr


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
    assert "keep such code in a function of its own" in str(caught.value)
    assert "test.ll:" in caught.value.render()


def test_a_result_is_refused() -> None:
    text = matmul(8, 8, 8, "float", "float").replace("define void", "define i32").replace("ret void", "ret i32 0")
    with pytest.raises(LoweringError, match="a result that is returned cannot be launched"):
        lowered(text)


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
    code.launch(launch, [ctypes.c_void_p(address) for address in addresses], 0)


@emulated
def test_the_emulator_finds_a_missing_barrier() -> None:
    with pytest.raises(AssertionError, match=r"since the last barrier|which is being copied"):
        run_changed(r"  call void @llvm\.nvvm\.barrier0\(\)\n", "")


@emulated
def test_the_emulator_finds_a_missing_wait() -> None:
    with pytest.raises(AssertionError, match="which is being copied"):
        run_changed(r"wait\.group\(i32 2\)", "wait.group(i32 3)")


@emulated
def test_the_emulator_finds_an_access_outside() -> None:
    with pytest.raises(AssertionError, match="outside of the buffers"):
        run_changed(r"mul i64 (%t\.\d+), 512", r"mul i64 \1, 520")
