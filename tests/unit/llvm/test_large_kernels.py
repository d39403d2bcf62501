"""LLVM's passes leave large kernels as they are, and optimise everything else."""

from __future__ import annotations

import re

import pytest

from tlx.llvm.codegen import emit_code

_SMALL = """
define LINKAGE float @NAME(ptr %p) noinline ATTRIBUTES{
  %slot = alloca float
  %x = load float, ptr %p
BODY  store float %x, ptr %slot
  %y = load float, ptr %slot
  ret float %y
}
"""


def _module(kernel: str, **words: str) -> str:
    """A function that calls a kernel, both with a variable on the stack that LLVM's passes remove."""
    user = _SMALL.replace("BODY", f"  %k = call float @{kernel}(ptr %p)\n").replace("%x, ptr %slot", "%k, ptr %slot")
    user = user.replace("LINKAGE ", "").replace("NAME", "user").replace("ATTRIBUTES", "")
    text = _SMALL.replace("NAME", kernel).replace("LINKAGE", words.get("linkage", "internal"))
    body = "".join(f"  %v{i} = load volatile float, ptr %p\n" for i in range(int(words.get("loads", "600"))))
    return text.replace("BODY", body).replace("ATTRIBUTES", words.get("attributes", "")) + user


def _with_allocas(text: str) -> set[str]:
    """The functions of the optimised module that still have the variable."""
    optimised = emit_code(text, "ll", 2).decode()
    assert ("optnone" in text) == ("optnone" in optimised)
    definitions = re.findall(r"(?ms)^define .*?@([-\w.]+)\(.*?^}", optimised)
    bodies = re.findall(r"(?ms)^define .*?^}", optimised)
    return {name for name, body in zip(definitions, bodies, strict=True) if "alloca" in body}


@pytest.mark.parametrize(
    ("kernel", "words", "kept"),
    [
        ("tlx.matmul", {}, {"tlx.matmul"}),
        ("tlx.nest.my-model", {}, {"tlx.nest.my-model"}),
        ("tlx.copy", {"loads": "3"}, set[str]()),
        ("tlx.matmul", {"linkage": "dso_local"}, set[str]()),
        ("matmul", {}, set[str]()),
    ],
)
def test_only_large_kernels_keep_their_instructions(kernel: str, words: dict[str, str], kept: set[str]) -> None:
    assert _with_allocas(_module(kernel, **words)) == kept


def test_functions_that_are_not_to_be_optimised_stay_so() -> None:
    assert _with_allocas(_module("tlx.matmul", attributes="optnone ")) == {"tlx.matmul"}


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_all_levels_emit_the_kernel(level: int) -> None:
    assert b"tlx.matmul" in emit_code(_module("tlx.matmul"), "asm", level)
