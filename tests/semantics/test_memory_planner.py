"""Memory of temporaries: its size, who allocates it, and results when it is shared."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import tlx
from tlx.api.validation import validate
from tlx.evaluate import Machine
from tlx.evaluate.memory import MemoryRegion
from tlx.graph import Graph
from tlx.ir.parser.module import parse
from tlx.lower.options import Options, Workspace
from tlx.lower.pipeline import lower_text

ZERO = "<2 x i32> zeroinitializer"
ORDER = "<2 x i32> <i32 0, i32 1>"


def load(name: str, pointer: str, size: int) -> str:
    shape = f"<2 x i32> <i32 {size}, i32 {size}>"
    arguments = f"ptr elementtype(float) {pointer}, {shape}, {ORDER}, {ZERO}, {ZERO}"
    return f"  {name} = call token @llvm.tensor.load({arguments})\n"


def tensor(name: str, size: int) -> str:
    """The token `NAME.t` of a flattened matrix."""
    arguments = f"<{size * size} x float> {name}, <2 x i32> <i32 {size}, i32 {size}>, {ORDER}, {ZERO}"
    return f"  {name}.t = call token @llvm.tensor.typeinfo({arguments})\n"


def product(name: str, lhs: str, rhs: str, size: int) -> str:
    """A product, and its token `NAME.t`."""
    call = f"call <{size * size} x float> @llvm.tensor.matmul(token {lhs}, token {rhs})"
    return f"  {name} = {call}\n{tensor(name, size)}"


def chain(products: int, size: int, name: str = "f") -> str:
    """`y = x @ w @ w ...` for each of `n` matrices."""
    array = f"[{size * size} x float]"
    lines = [
        f"define void @{name}(ptr noalias %x, ptr noalias %w, ptr noalias %y, i64 %n) {{\n",
        "entry:\n  br label %loop\n\nloop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n",
        f"  %from = getelementptr {array}, ptr %x, i64 %i\n  %to = getelementptr {array}, ptr %y, i64 %i\n",
        load("%b", "%w", size),
        load("%p0.t", "%from", size),
        *(product(f"%p{k + 1}", f"%p{k}.t", "%b", size) for k in range(products)),
        f"  call void @llvm.tensor.store(ptr %to, token %p{products}.t, {ZERO})\n  %next = add i64 %i, 1\n",
        "  %more = icmp ult i64 %next, %n\n  br i1 %more, label %loop, label %end\n\nend:\n  ret void\n}\n",
    ]
    return "".join(lines)


def bytes_asked_for(lowered: str) -> int:
    """What all calls to malloc in a lowered module ask for."""
    return sum(map(int, re.findall(r"call [^\n]*@malloc\(i64 (\d+)\)", lowered)))


def bytes_of_temporaries(text: str, target: str) -> int:
    """What a module asks for when it is lowered for a target."""
    return bytes_asked_for(lower_text(text, target=target, options=Options(stop_after="to-tiles")))


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
def test_a_chain_needs_two_temporaries(target: str) -> None:
    three, *longer = (bytes_of_temporaries(chain(products, 500), target) for products in (3, 4, 5, 8))
    assert 2 * 4 * 500 * 500 < three < 2.4 * 4 * 500 * 500
    assert longer == [three] * 3


def layer(number: int, size: int) -> str:
    """A small transformer block: `h + tanh(q @ k) @ v @ w3 @ w4`, where q, k and v are products of h and weights."""
    n, vector = number, f"<{size * size} x float>"
    q, k, v, s, a, u, o = (f"%{stem}{n}" for stem in "qkvsauo")
    lines = [product(name, f"%h{n}.t", f"%w{i}", size) for i, name in enumerate((q, k, v))]
    lines += [product(s, f"{q}.t", f"{k}.t", size), f"  %e{n} = call {vector} @llvm.tensor.tanh(token {s}.t)\n"]
    lines += [tensor(f"%e{n}", size), product(a, f"%e{n}.t", f"{v}.t", size), product(u, f"{a}.t", "%w3", size)]
    lines += [product(o, f"{u}.t", "%w4", size), f"  %r{n} = call {vector} @llvm.tensor.tovector(token %h{n}.t)\n"]
    return "".join([*lines, f"  %h{n + 1} = fadd {vector} %r{n}, {o}\n", tensor(f"%h{n + 1}", size)])


def layers(count: int, size: int) -> str:
    parameters = ", ".join(["ptr noalias %x", "ptr noalias %y", *(f"ptr noalias %m{k}" for k in range(5))])
    lines = [f"define void @f({parameters}) {{\n", load("%h0.t", "%x", size)]
    lines += [load(f"%w{k}", f"%m{k}", size) for k in range(5)] + [layer(k, size) for k in range(count)]
    return "".join([*lines, f"  call void @llvm.tensor.store(ptr %y, token %h{count}.t, {ZERO})\n  ret void\n}}\n"])


@pytest.mark.parametrize("target", ["generic", "avx2", "amx"])
def test_twelve_layers_need_little_more_than_one(target: str) -> None:
    one, twelve = (bytes_of_temporaries(layers(count, 256), target) for count in (1, 12))
    assert twelve < 1.3 * one


def bytes_of_stack(text: str, target: str) -> int:
    """The buffers of the user's function on the stack."""
    lowered = lower_text(text, target=target, options=Options(stop_after="to-tiles"))
    body = lowered[lowered.index("define void @f(") :].split("\n}\n")[0]
    sizes = {"float": 4, "i8": 1}
    return sum(int(n) * sizes[e] for n, e in re.findall(r"= alloca \[(\d+) x (\w+)\]", body))


@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_buffers_on_the_stack_overlap(target: str) -> None:
    assert 2 * 4 * 48 * 48 <= bytes_of_stack(chain(8, 48), target) < 2.1 * 4 * 48 * 48
    assert bytes_of_stack(chain(3, 8), target) == 2 * 4 * 8 * 8, "small ones have an alloca each"


def run_time_chain(products: int) -> str:
    """`y = x @ w @ w ...` for square matrices of a size that is an argument."""
    shape, handle = "<2 x i32> %s", "<vscale x 1 x float>"
    lines = [
        "define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %y, i32 %n) {\n",
        "  %r = insertelement <2 x i32> undef, i32 %n, i32 0\n  %s = insertelement <2 x i32> %r, i32 %n, i32 1\n",
    ]
    for name, pointer in (("%p0.t", "%x"), ("%b", "%w")):
        arguments = f"ptr elementtype(float) {pointer}, {shape}, {ORDER}, {ZERO}, {ZERO}"
        lines.append(f"  {name} = call token @llvm.tensor.load({arguments})\n")
    for k in range(products):
        lines.append(f"  %p{k + 1} = call {handle} @llvm.tensor.matmul(token %p{k}.t, token %b)\n")
        arguments = f"{handle} %p{k + 1}, {shape}, {ORDER}, {ZERO}"
        lines.append(f"  %p{k + 1}.t = call token @llvm.tensor.typeinfo({arguments})\n")
    lines.append(f"  call void @llvm.tensor.store(ptr %y, token %p{products}.t, {ZERO})\n  ret void\n}}\n")
    return "".join(lines)


def test_a_chain_of_run_time_size_needs_two_temporaries() -> None:
    size, sizes = 20, list[int]()
    random = np.random.default_rng(0)
    x, w = (random.integers(-1, 2, (size, size)).astype(np.float32) for _ in range(2))
    for products in (3, 6):
        module = parse(lower_text(run_time_chain(products), options=Options(stop_after="to-2d")))
        machine, y = Machine(module), np.zeros_like(x)
        allocate = machine.memory.allocate

        def noted(size: int, label: str, align: int = 16, allocate: Any = allocate) -> MemoryRegion:
            sizes.extend([size] if label.startswith("heap") else [])
            return allocate(size, label, align)

        machine.memory.allocate = noted
        machine.call("f", x, w, y, size)
        np.testing.assert_array_equal(y, expected(x, w, products))
    block = 2 * (4 * size * size + 63)
    assert sizes.count(block) == 2
    assert len(sizes) == 2 + 3 + 6, "the operands of each product are packed in memory of its own"


@pytest.mark.parametrize("workspace", ["malloc", "arena", "argument"])
def test_meaning_of_a_chain_of_run_time_size(workspace: Workspace) -> None:
    kernel = tlx.compile(run_time_chain(5), "generic", options=Options(workspace=workspace))
    for size in (5, 70, 33):
        x, w = (np.random.default_rng(size).integers(-1, 2, (size, size)).astype(np.float32) for _ in range(2))
        y = np.zeros_like(x)
        kernel.f(x, w, y, size)
        np.testing.assert_allclose(y, expected(x, w, 5), rtol=1e-5)


def expected(x: np.ndarray, w: np.ndarray, products: int) -> np.ndarray:
    result = x.astype(np.float64)
    for _ in range(products):
        result = result @ w
    return result


@pytest.mark.parametrize("workspace", ["malloc", "arena", "argument"])
def test_every_allocator_serves_several_threads(workspace: Workspace) -> None:
    size, count = 96, 3
    kernel = tlx.compile(chain(6, size), options=Options(workspace=workspace, threads="openmp", thread_cycles=0))
    wrong: list[float] = []

    def run(seed: int) -> None:
        random = np.random.default_rng(seed)
        x, w = random.standard_normal((count, size, size), np.float32), random.standard_normal((size, size), np.float32)
        for _ in range(3):
            y = np.zeros_like(x)
            kernel.f(x, w, y, count)
            right = expected(x, w, 6)
            wrong.extend([error] if (error := abs(right - y).max() / abs(right).max()) > 1e-5 else [])

    threads = [Thread(target=run, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("workspace", ["malloc", "arena", "argument"])
@pytest.mark.parametrize("target", ["generic", "native"])
def test_meaning_of_layers(target: str, workspace: Workspace) -> None:
    kernel = tlx.compile(layers(3, 72), target, options=Options(workspace=workspace))
    random = np.random.default_rng(1)
    x, *weights = (random.standard_normal((72, 72)) / 8 for _ in range(6))
    right = x
    for _ in range(3):
        q, k, v = (right @ w for w in weights[:3])
        right = right + np.tanh(q @ k) @ v @ weights[3] @ weights[4]
    y = np.zeros((72, 72), np.float32)
    kernel.f(x.astype(np.float32), y, *(w.astype(np.float32) for w in weights))
    assert abs(y - right).max() < 1e-4 * abs(right).max()


BRANCHES = f"""
define void @f(ptr noalias %x, ptr noalias %y, i1 %c, i1 %d) {{
entry:
{load("%a", "%x", 72)}{product("%p", "%a", "%a", 72)}  br i1 %c, label %left, label %right

left:
{product("%l", "%p.t", "%a", 72)}{product("%m", "%l.t", "%p.t", 72)}
  call void @llvm.tensor.store(ptr %y, token %m.t, {ZERO})
  br i1 %d, label %right, label %end

right:
{product("%r", "%p.t", "%p.t", 72)}{product("%s", "%r.t", "%r.t", 72)}{product("%t", "%s.t", "%r.t", 72)}
  call void @llvm.tensor.store(ptr %y, token %t.t, {ZERO})
  br label %end

end:
  ret void
}}
"""


@pytest.mark.parametrize("workspace", ["malloc", "argument"])
def test_meaning_of_branches(workspace: Workspace) -> None:
    assert validate(BRANCHES, "avx2", options=Options(workspace=workspace, stop_after="to-tiles"), runs=4) == []
    assert bytes_of_temporaries(BRANCHES, "avx2") < 3.2 * 4 * 72 * 72


@pytest.mark.parametrize("threads", ["none", "openmp"])
def test_iterations_that_threads_share_have_scratch_memory_of_their_own(threads: Any) -> None:
    """One after the other, they use the caller's."""
    g = Graph("f")
    g.output(g.matmul(g.parameter("x", (16, 128, 512), "bfloat16"), g.parameter("w", (16, 512, 512), "bfloat16")))
    options = Options(threads=threads, thread_cycles=0, workspace="argument", stop_after="to-tiles")
    text = lower_text(g.text(), target="amx", options=options)
    assert ("nonnull %scratch" in text) == (threads == "none")


def test_the_size_of_the_workspace_is_exported() -> None:
    lowered = lower_text(chain(4, 96), target="avx2", options=Options(workspace="argument"))
    (size,) = re.findall(r"(?m)^@f_workspace = constant i64 (\d+), align 8$", lowered)
    assert 2 * 4 * 96 * 96 <= int(size) < 2.6 * 4 * 96 * 96
    assert "ptr noalias %y, i64 %n, ptr noalias %workspace) {" in lowered
    assert not re.search(r"call [^\n]*@(malloc|free)\(", lowered)


def test_functions_that_others_call_keep_their_signature() -> None:
    caller = "define void @g(ptr %x, ptr %w, ptr %y) {\n  call void @f(ptr %x, ptr %w, ptr %y, i64 1)\n  ret void\n}\n"
    lowered = lower_text(chain(4, 96) + caller, target="avx2", options=Options(workspace="argument"))
    assert "_workspace" not in lowered
    assert bytes_asked_for(lowered) > 0


NESTED = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { N = 96, K = 6 };
void f(float *x, float *w, float *y, long n);
void g(float *x, float *w, float *y, long n);
static int wrong(unsigned seed, int both) {
  static __thread float x[N * N], w[N * N], y[N * N], z[N * N];
  for (int i = 0; i < N * N; i++) {
    x[i] = (float)(rand_r(&seed) % 7 - 3);
    w[i] = i % (N + 1) ? 0 : 0.5f;
  }
  memset(y, 0, sizeof y);
  f(x, w, y, 1);
  if (both)
    g(x, w, z, 1);
  int count = 0;
  for (int i = 0; i < N * N; i++)
    count += y[i] != x[i] / (1 << K) || (both && z[i] != x[i] / (1 << (K + 2)));
  return count;
}
static void *run(void *seed) {
  long count = 0;
  for (int i = 0; i < 20; i++)
    count += wrong((unsigned)(long)seed + i, i % 2);
  return (void *)count;
}
int main(void) {
  long count = wrong(1, 0);
  pthread_t threads[4];
  for (long i = 0; i < 4; i++)
    pthread_create(threads + i, 0, run, (void *)(10 * i));
  pid_t child = fork();
  if (!child)
    _exit(wrong(5, 1) != 0);
  int status;
  waitpid(child, &status, 0);
  for (int i = 0; i < 4; i++) {
    void *found;
    pthread_join(threads[i], &found);
    count += (long)found;
  }
  count += status != 0;
  printf("%ld\\n", count);
}
"""


@pytest.mark.parametrize("version", [14, 19])
def test_an_arena_outlives_calls_threads_and_forks(version: int, tmp_path: Path) -> None:
    compiler = shutil.which(f"clang-{version}")
    if compiler is None:
        pytest.skip(f"needs clang-{version}")
    (tmp_path / "main.c").write_text(NESTED)
    for name, products in (("f", 6), ("g", 8)):
        text = chain(products, 96, name)
        if version == 14:
            text = re.sub(r"\bptr(?= (?:elementtype|noalias|%))", "float*", text)
            text = re.sub(r"getelementptr \[.*\], (float\* %\w+), i64 %i", r"getelementptr float, \1, i64 0", text)
        (tmp_path / f"{name}.ll").write_text(lower_text(text, target="generic", options=Options(workspace="arena")))
    files = [str(tmp_path / name) for name in ("main.c", "f.ll", "g.ll")]
    command = [compiler, "-O1", "-Wno-override-module", *files, "-pthread", "-o", str(tmp_path / "main")]
    subprocess.run(command, check=True)
    assert subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout == "0\n"
