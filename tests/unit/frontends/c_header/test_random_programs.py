"""Random C programs with tokens in any control flow compute the same with all compilers, flags and sanitizers."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from tests.support.tools import HANG_S, quick, require
from tlx.evaluate import Machine
from tlx.frontends.c_header import include_dir
from tlx.ir.parser.module import parse
from tlx.lower import pipeline

SETTINGS: Final = (
    ("clang-19", "-O0"),
    ("clang-14", "-O0"),
    ("clang-19", "-O1"),
    ("clang-14", "-O2"),
    ("clang-19", "-O3 -mavx512f"),
    ("clang-19", "-Os -g"),
)
HEAD: Final = """
#include <tlx.h>
typedef int v16 __attribute__((__vector_size__(64), __aligned__(4)));
typedef v16 _tensor_t;
typedef int dims __attribute__((__vector_size__(8)));
#define S (dims){4, 4}, (dims){0, 1}, (dims){0, 0}
static int token(v16 x) { return tensor_typeinfo(x, S); }
static int pick(int c, int a, int b) { if (c & 1) return a; return b; }
static v16 times(int a, int b) { return tensor_matmul(a, b); }
static v16 twice(v16 a, int b) {
  int t = token(a);
  v16 r = {0};
  for (int i = 0; i < 2; i++) r += times(t, b);
  return r;
}
void f(v16 *o, const v16 *a, int i0, int i1) {
  int i2 = 1;
  v16 x0 = a[0], x1 = a[1], x2 = {0};
  int t0 = token(x0), t1 = tensor_load((const int *)&a[1], S, (dims){0, 0});
"""
TAIL: Final = """
  o[0] = x0; o[1] = x1; o[2] = x2; o[3] = tensor_matmul(t0, t1);
  o[4][0] = i0; o[4][1] = i1; o[4][2] = i2;
}
"""
MAIN: Final = """
#include <stdio.h>
static v16 inputs[2], outputs[5];
int main(void) {
  static const int numbers[4][2] = {{1, 2}, {0, 0}, {7, -3}, {4, 5}};
  for (int i = 0; i < 32; i++) inputs[i / 16][i % 16] = i - 16;
  for (int run = 0; run < 4; run++) {
    for (int i = 0; i < 80; i++) outputs[i / 16][i % 16] = 0;
    f(outputs, inputs, numbers[run][0], numbers[run][1]);
    for (int i = 0; i < 80; i++) printf("%d ", outputs[i / 16][i % 16]);
  }
  return 0;
}
"""
SANITIZERS: Final = "-fsanitize=address,undefined"


class Writer:
    """Writes statements about ints i0 to i2, tensors x0 to x2 and tokens t0 and t1."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def program(self) -> str:
        return HEAD + "\n".join(self.statement(3) for _ in range(12)) + TAIL

    def number(self) -> str:
        return f"i{self.random.randrange(3)}"

    def tensor(self) -> str:
        return f"x{self.random.randrange(3)}"

    def token(self) -> str:
        return f"t{self.random.randrange(2)}"

    def condition(self) -> str:
        return f"({self.number()} {self.random.choice(['<', '>', '==', '&'])} {self.random.randrange(5)})"

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def block(self, depth: int) -> str:
        return " ".join(self.statement(depth - 1) for _ in range(self.random.randrange(1, 5)))

    def statement(self, depth: int) -> str:
        simple = (
            lambda: f"{self.number()} = {self.number()} * 3 + {self.random.randrange(7)};",
            lambda: f"{self.tensor()} = {self.tensor()} + {self.tensor()};",
            lambda: f"{self.token()} = tensor_typeinfo({self.tensor()}, S);",
            lambda: f"{self.token()} = token({self.tensor()});",
            lambda: f"{self.tensor()} = tensor_matmul({self.token()}, {self.token()});",
            lambda: f"{self.tensor()} = times({self.token()}, pick({self.number()}, {self.token()}, {self.token()}));",
            lambda: f"{self.token()} = {self.condition()} ? {self.token()} : {self.token()};",
            lambda: f"{self.tensor()}[{self.random.randrange(16)}] = {self.number()};",
            lambda: f"{self.tensor()} = twice({self.tensor()}, {self.token()});",
        )
        nested = (self.branch, self.loop, self.switch, self.jump)
        if depth > 0 and self.random.random() < 0.3:
            return self.random.choice(nested)(depth)
        return self.random.choice(simple)()

    def branch(self, depth: int) -> str:
        return f"if {self.condition()} {{ {self.block(depth)} }} else {{ {self.block(depth)} }}"

    def loop(self, depth: int) -> str:
        index, leave = self.name("k"), self.random.choice(["break", "continue"])
        head = f"for (int {index} = 0; {index} < {self.random.randrange(1, 4)}; {index}++)"
        return f"{head} {{ {self.block(depth)} if {self.condition()} {leave}; {self.block(depth)} }}"

    def switch(self, depth: int) -> str:
        first, second, third = (self.block(depth) for _ in range(3))
        return f"switch ({self.number()} & 3) {{ case 0: {first} case 1: {second} break; case 3: case 2: {third} }}"

    def jump(self, depth: int) -> str:
        label = self.name("l")
        return f"if {self.condition()} goto {label}; {self.block(depth)} {label}: ;"


def outcome(source: Path, compiler: str, flags: str) -> np.ndarray[Any, Any]:
    """What a program computes from a few numbers, when it is compiled so."""
    command = [compiler, *flags.split(), "-w", "-S", "-emit-llvm", f"-I{include_dir()}", str(source), "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    module = pipeline.raise_front_ends(parse(text, source.name))
    pipeline.verify(module)
    machine = Machine(module)
    outputs = np.zeros((4, 80), "i4")
    for output, numbers in zip(outputs, ((1, 2), (0, 0), (7, -3), (4, 5)), strict=True):
        machine.call("f", output, np.arange(-16, 16, dtype="i4"), *numbers)
    return outputs


@pytest.mark.parametrize("seed", range(6))
def test_random_program(seed: int, tmp_path: Path) -> None:
    for compiler in ("clang-14", "clang-19"):
        require(compiler)
    source = tmp_path / "program.c"
    source.write_text(Writer(seed).program())
    expected = outcome(source, *SETTINGS[0])
    for setting in SETTINGS[1:]:
        np.testing.assert_array_equal(outcome(source, *setting), expected, str(setting))


@pytest.mark.parametrize("seed", quick(range(40, 44)))
def test_random_program_in_sanitizers(seed: int, tmp_path: Path) -> None:
    """Nothing is reported, and the results are the same; signed integers may wrap, as in the other test."""
    for tool in ("clang-19", "gcc"):
        require(tool)
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(Writer(seed).program())
    expected = outcome(source, *SETTINGS[0])
    source.write_text(f"{source.read_text()}{MAIN}")
    driver = str(Path(sys.executable).with_name("tlx-cc"))
    options = ["-O1", "-g", "-w", "-fwrapv", SANITIZERS, "-fno-sanitize-recover=all", "--tlx-target=generic"]
    compile_ = [driver, "--tlx-clang=clang-19", *options, "-c", str(source), "-o", f"{program}.o"]
    link = ["gcc", SANITIZERS, f"{program}.o", "-o", str(program)]  # Debian's clang lacks their library
    for command in (compile_, link):
        subprocess.run(command, check=True, timeout=HANG_S)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert not done.stderr
    assert done.stdout.split() == [str(number) for number in expected.ravel()]
