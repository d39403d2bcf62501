"""Several versions of each kernel on other machines: under an emulator, the program takes the right one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.emulation import Machine
from tlx.diagnostics import UsageError
from tlx.ir.parser.module import parse
from tlx.legalize.riscv.host import READ_LENGTH
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

SHAPE = "<2 x i32> <i32 24, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
PROGRAM = f"""define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {SHAPE})
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, {SHAPE})
  %p = call <576 x float> @llvm.tensor.matmul(token %x, token %y)
  store <576 x float> %p, ptr %c, align 4
  ret void
}}
"""
LEVEL = "\ndefine i32 @level() {\n  %l = load i32, ptr @tlx.cpu.level\n  ret i32 %l\n}\n"
ARM = "generic,neon,sve,sve256,sve512"
ARM_WITH_ZA = "generic,neon,sme,sme512"
POWER = "generic,vsx,mma"
RISCV = "generic,rvv,rvv256,rvv512"


@pytest.mark.parametrize(
    ("targets", "emulator", "best"),
    [
        (ARM, "qemu-aarch64 -cpu cortex-a72", "generic"),
        (ARM, "qemu-aarch64 -cpu neoverse-n1", "generic"),
        (ARM, "qemu-aarch64 -cpu max,sve=off", "neon"),
        (ARM, "qemu-aarch64 -cpu max,sve128=on,sve-default-vector-length=16", "sve"),
        (ARM, "qemu-aarch64 -cpu max,sve256=on,sve-default-vector-length=32", "sve256"),
        (ARM, "qemu-aarch64 -cpu max,sve512=on,sve-default-vector-length=64", "sve512"),
        ("generic,neon,sve", "qemu-aarch64 -cpu max,sve256=on,sve-default-vector-length=32", "neon"),
        (ARM_WITH_ZA, "qemu-aarch64 -cpu max,sme=off", "neon"),
        (ARM_WITH_ZA, "qemu-aarch64 -cpu max,sme128=on,sme-default-vector-length=16", "sme"),
        (ARM_WITH_ZA, "qemu-aarch64 -cpu max,sme256=on,sme-default-vector-length=32", "neon"),
        (ARM_WITH_ZA, "qemu-aarch64 -cpu max,sme512=on,sme-default-vector-length=64", "sme512"),
        ("generic,vsx", "qemu-ppc64 -cpu power7", "generic"),
        ("generic,vsx", "qemu-ppc64 -cpu power8", "vsx"),
        (POWER, "qemu-ppc64le -cpu power8", "vsx"),
        (POWER, "qemu-ppc64le -cpu power9", "vsx"),
        (POWER, "qemu-ppc64le -cpu power10", "mma"),
        (RISCV, "qemu-riscv64 -cpu rv64", "generic"),
        (RISCV, "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0", "rvv"),
        (RISCV, "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=256", "rvv256"),
        (RISCV, "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=1024", "rvv512"),
    ],
)
def test_programs_take_the_best_version(targets: str, emulator: str, best: str) -> None:
    machine = Machine("generic", emulator)
    machine.require()
    text = str(lower(parse(PROGRAM), targets, options=Options(triple=machine.options.triple)))
    module = machine.compile(text + LEVEL)
    random = np.random.default_rng(5)
    a, b = (random.integers(-5, 6, (24, 24)).astype(np.float32) for _ in range(2))
    c = np.zeros((24, 24), np.float32)
    module.f(c, a, b)
    np.testing.assert_array_equal(c, a @ b)
    level = module.level()
    assert [version.name for version in find_target(targets).versions][level - 1] == best


@pytest.mark.parametrize(
    ("feature", "element", "option", "level"),
    [
        ("zvl256b", "float", "vlen=128", 1),
        ("zvl256b", "float", "vlen=256", 2),
        ("zvl256b", "float", "vlen=512", 2),
        ("zvfhmin", "half", "zvfhmin=false", 1),
        ("zvfhmin", "half", "zvfhmin=true", 2),
    ],
)
def test_extensions_of_risc_v_without_letters(feature: str, element: str, option: str, level: int) -> None:
    """The length of vectors, of which more is enough; and what only a system call reports."""
    types = {"float": np.float32, "half": np.float16}
    program = PROGRAM.replace("float)", f"{element})")
    text = str(lower(parse(program), f"rvv,rvv+{feature}", options=Options(triple="riscv64-linux-gnu")))
    module = Machine("generic", f"qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,{option}").compile(text + LEVEL)
    a = np.eye(24, dtype=types[element])
    c = np.zeros((24, 24), np.float32)
    module.f(c, a, a)
    np.testing.assert_array_equal(c, a)
    assert module.level() == level


@pytest.mark.parametrize("bits", [128, 256, 512, 1024])
def test_code_by_which_native_reads_the_length_of_vectors(bits: int) -> None:
    code = ", ".join(map(str, READ_LENGTH))
    text = f'define i64 @f() naked {{\n  call void asm sideeffect ".byte {code}", ""()\n  unreachable\n}}\n'
    machine = Machine("generic", f"qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen={bits}")
    module = machine.compile(text, compiler="clang-19")  # TLX's LLVM assembles nothing for other machines
    assert module.f() == bits // 8


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ("avx2,neon", "targets avx2 and neon are for different machines"),
        ("vsx,rvv", "targets rvv and vsx are for different machines"),
        ("generic,neon+mte", "cannot detect it at run time"),
    ],
)
def test_targets_that_cannot_be_in_one_file(targets: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lower(parse(PROGRAM), targets)
