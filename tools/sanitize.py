"""Run random tensor programs whose lowered code is instrumented by AddressSanitizer.

    python tools/sanitize.py --count=100 --targets=avx2,avx512 [--seed=N] [--time=SECONDS] [--keep=FOLDER]

`tlx fuzz` runs machine code on arguments between inaccessible pages; this also sees accesses outside the buffers that
the code itself has on the stack or allocates, uses after free, leaks, and accesses just beside an argument in either
direction at once. For each program

    lowered IR, each function `sanitize_address`   --clang-19 -O1 -fsanitize=address-->   object file
    a C driver: arguments from malloc, calls       --clang-19 -O1 -fsanitize=address-->   object file
    both                                                    --gcc -fsanitize=address-->   program, which is run

The driver gives each argument a block of exactly its size. With `--self-test` the blocks are a byte short, and the
programs have to fail. Sanitizers for undefined behaviour instrument C, not IR; what IR says about overflow (`nsw`),
alignment and `noalias` is checked by the evaluator of `tlx fuzz`.

The exit status is 1 if the sanitizer reports a program, which is then kept.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tlx.api.files import FORMAT_BY_NAME
from tlx.api.lowering import Compilation, SourceInput, lower_source
from tlx.api.wrappers import slot_wrapper_definition
from tlx.diagnostics import LoweringError
from tlx.fuzz.generation.model import RandomFunction
from tlx.fuzz.generation.programs import RandomProgram, random_program
from tlx.fuzz.options import RandomOptions, is_runnable, random_options, without_workspace_argument
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import uses_typed_pointers
from tlx.ir.prepared import CONSTANT
from tlx.lower.options import Options
from tlx.target.host import cpu_flags
from tlx.target.lookup import find_target

CLANG: Final = "clang-19"
LINKER: Final = "gcc"
_LATER_FUNCTION: Final = re.compile(r"@llvm\.(?:minimumnum|maximumnum)\.")
"""Functions of LLVM 20, for which LLVM 19 emits calls."""
_SECONDS: Final = 120
_ROUND: Final = """
__attribute__((weak)) __bf16 __truncsfbf2(float value) {  // libgcc has it since GCC 13
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  unsigned short upper = value != value ? bits >> 16 | 64 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  __bf16 result;
  __builtin_memcpy(&result, &upper, 2);
  return result;
}"""
_TABLE: Final = "called_functions"
_DEFINE: Final = re.compile(r"(?m)^(define .*?)( \{)$")
_REPORT: Final = re.compile(r"ERROR: (?:Address|Leak)Sanitizer")


@dataclass(frozen=True)
class Trial:
    """A program for a target.

    Attributes:
        program: The program.
        target: The target's name.
        drawn: Options of its lowering.
    """

    program: RandomProgram
    target: str
    drawn: RandomOptions

    def lowered(self) -> str:
        """The lowered IR, in which each function is to be instrumented, and functions that call them from C.

        Raises:
            LoweringError: The lowering does not support the program.
        """
        text = self.drawn.compiled_for(self.program.text)
        source = SourceInput("<program>", None, text)
        options = self.drawn.options(Options())
        lowered = lower_source(Compilation(source, FORMAT_BY_NAME, self.target, options))
        wrappers = [
            slot_wrapper_definition(lowered.defined[f.name], _symbol(number), lowered.attributes.get(f.name, ""))
            for number, f in enumerate(self.program.functions)
        ]
        entries = ", ".join(f"ptr @{_symbol(number)}" for number in range(len(wrappers)))
        table = f"@{_TABLE} = constant [{len(wrappers)} x ptr] [{entries}]\n"
        return _DEFINE.sub(r"\1 sanitize_address\2", "\n".join([str(lowered.module), *wrappers, table]))

    def report(self, folder: Path, missing_bytes: int) -> str:
        """What the sanitizer reports; empty if nothing. The files are in a folder."""
        (folder / "program.ll").write_text(self.program.text)
        (folder / "lowered.ll").write_text(self.lowered())
        (folder / "driver.c").write_text(driver(self.program.functions, folder, missing_bytes))
        compile_both = [CLANG, "-O1", "-g", "-fsanitize=address", "-w", "-c", "lowered.ll", "driver.c"]
        link = [LINKER, "-fsanitize=address", "driver.o", "lowered.o", "-lm", "-o", "driver"]
        for command in (compile_both, link):
            subprocess.run(command, cwd=folder, check=True, timeout=_SECONDS)
        done = subprocess.run(
            ["./driver"],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "ASAN_OPTIONS": "detect_stack_use_after_return=1"},
        )
        if done.returncode == 0:
            return ""
        return done.stderr if _REPORT.search(done.stderr) else f"exit status {done.returncode}\n{done.stderr}"


def driver(functions: Sequence[RandomFunction], folder: Path, missing_bytes: int) -> str:
    """C code that calls each function on its arguments, which are written to files of the folder."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", f"extern void (*const {_TABLE}[])(void **);"]
    body: list[str] = []
    for number, function in enumerate(functions):
        arrays, _ = function.arguments()
        names = [_argument(folder, f"{number}.{place}", array) for place, array in enumerate(arrays)]
        blocks = ", ".join(f"block({name})" for name in names)
        body += [f"  void *blocks{number}[] = {{{blocks}}};", f"  {_TABLE}[{number}](blocks{number});"]
        body += [f"  free(blocks{number}[{place}]);" for place in range(len(names))]
    return "\n".join(
        [
            *lines,
            "static void *block(const char *name, long size) {",
            f"  char *block = malloc(size - {missing_bytes} > 0 ? size - {missing_bytes} : 0);",
            '  FILE *file = fopen(name, "rb");',
            f"  if (fread(block, 1, size - {missing_bytes}, file) != (size_t)(size - {missing_bytes})) exit(2);",
            "  fclose(file);",
            "  return block;",
            "}",
            _ROUND,
            "int main(void) {",
            *body,
            "  return 0;",
            "}",
            "",
        ]
    )


def _symbol(number: int) -> str:
    """The name of the function that calls the program's function of this number."""
    return f"call_{number}"


def _argument(folder: Path, name: str, array: Array) -> str:
    (folder / name).write_bytes(array.tobytes())
    return f'"{name}", {array.nbytes}'


def trial_of(target: str, seed: int) -> Trial | None:
    """The program of a seed, with options that this machine can run; None if it cannot be called so.

    Arguments that are prepared once take other blocks, and clang 19 reads no typed pointers and lacks some functions.
    """
    program = random_program("any", f"sanitize {seed}")
    if CONSTANT in program.text or uses_typed_pointers(program.text) or not program.functions:
        return None
    if _LATER_FUNCTION.search(program.text):
        return None
    drawn = random_options(target, seed)
    if not is_runnable(drawn, find_target(target), cpu_flags()):
        drawn = random_options(target, seed, has_machine=False)
    return Trial(program, target, without_workspace_argument(drawn))


def main() -> int:
    """Run the programs; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="programs for each target")
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--targets", default="avx2,avx512", help="targets that this machine runs")
    parser.add_argument("--time", type=float, default=None, help="start no more programs after this many seconds")
    parser.add_argument("--keep", type=Path, default=Path("tlx-sanitize"), help="folder for programs that are reported")
    parser.add_argument("--self-test", action="store_true", help="give blocks that are a byte short: all have to fail")
    options = parser.parse_args()
    begun, ran, refused, failed, reported = time.monotonic(), 0, 0, 0, 0
    for seed in range(options.seed, options.seed + options.count):
        for target in options.targets.split(","):
            if options.time is not None and time.monotonic() - begun > options.time:
                break
            trial = trial_of(target, seed)
            if trial is None:
                continue
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                try:
                    report = trial.report(folder, int(options.self_test))
                except (LoweringError, subprocess.CalledProcessError) as error:
                    refused += isinstance(error, LoweringError)
                    failed += isinstance(error, subprocess.CalledProcessError)
                    continue
                ran += 1
                if report:
                    reported += 1
                    if not options.self_test:
                        kept = options.keep / f"{target}-{seed}"
                        kept.parent.mkdir(parents=True, exist_ok=True)
                        subprocess.run(["cp", "-r", str(folder), str(kept)], check=True)
                        print(f"{kept}: {trial.drawn}\n{report[:3000]}", flush=True)
    print(f"{ran} programs ran, {refused} were refused, {failed} not built; {reported} were reported")
    return int(reported < ran or not ran) if options.self_test else int(reported > 0)


if __name__ == "__main__":
    sys.exit(main())
