"""The core names no machine, and targets import only what describes machines and LLVM's IR."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, imports_of, python_files

# What benchmarks and fuzzers are about is machines and programs for them; nothing imports them.
TOOLS = ("tlx.bench", "tlx.fuzz", "tlx.cli.bench", "tlx.cli.fuzz", "tlx.tuning.machine")

MACHINE = re.compile(r"amx|avx|x86|sse\d|tdp[a-z]|vpdp|cpuid|xgetbv|neon|\bsve", re.IGNORECASE)

# Words of LLVM's assembly language, which any module may hold.
LLVM_WORDS = {
    "X86_AMX",  # the type, in Python
    "x86_amx",
    "x86_mmx",
    "x86_fp80",
    "x86_",  # the prefix of intrinsics and calling conventions
    "x86_stdcallcc",
    "x86_fastcallcc",
    "x86_thiscallcc",
    "x86_64_sysvcc",
    "x86_vectorcallcc",
    "x86_regcallcc",
}


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """Names and strings of a file, with their lines, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    explanations = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in explanations:
                yield node.lineno, text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name
            case _:
                pass


CORE = {
    name: path
    for path, name in python_files().items()
    if not name.startswith(("tlx.frontends", "tlx.legalize", *TOOLS))
}


@pytest.mark.parametrize("module", CORE)
def test_the_core_names_no_machine(module: str) -> None:
    path = CORE[module].relative_to(ROOT)
    assert not MACHINE.search(module)
    named = [(line, word) for line, word in words_of(CORE[module]) if MACHINE.search(word) and word not in LLVM_WORDS]
    assert not named, "\n".join(f"{path}:{line}: {word}" for line, word in named)


FILES = python_files()
TARGETS = {name: path for path, name in FILES.items() if name.startswith("tlx.legalize")}
FOR_TARGETS = (
    "tlx.diagnostics",
    "tlx.ir",
    "tlx.legalize",
    "tlx.lower.legalize",
    "tlx.lower.memory.allocation",
    "tlx.target",
)
FOR_SEMANTICS = (*FOR_TARGETS, "tlx.evaluate", "tlx.intrinsics.numpy_types")


@pytest.mark.parametrize("module", TARGETS)
def test_targets_import_what_describes_machines(module: str) -> None:
    allowed = FOR_SEMANTICS if ".semantics" in module else FOR_TARGETS
    violations = [item for item in imports_of(TARGETS[module], set(FILES.values())) if item.target.startswith("tlx")]
    assert not [item for item in violations if not item.target.startswith(allowed)]
