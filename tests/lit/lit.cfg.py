"""Configuration of the text tests: LLVM IR in, FileCheck on what comes out.

A test is written as in LLVM::

    ; RUN: tlx-lower %s -o - --target=amx | FileCheck %s

Each tool named in ``TOOLS`` may stand in a RUN line and is also a feature, so that a test which needs it says
``; REQUIRES: clang-19``. A missing tool makes such tests unsupported on a developer's machine and is an error where CI
is set. The features of the host's CPU, in LLVM's spelling (``avx2``, ``avx512f``, ``amx-tile``), are features as well.
Where LLVM's FileCheck is missing, ``commands/file_check.py`` stands in for it; what it cannot do is behind the feature
``llvm-filecheck``.

`tlx` and `tlx-lower` run in processes that a server forks (see ``commands/server.py``); the tests in ``cli/process``
run the installed commands, and so do those of `tlx-cc` and `tlx-c++`, which become clang.
"""

import os
import platform
import runpy
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lit.formats import ShTest
from llvmlite import binding

if TYPE_CHECKING:  # lit puts these two into the namespace of this file
    config: Any = None
    lit_config: Any = None

HERE = Path(__file__).resolve().parent
ENVIRONMENT = Path(sys.executable).parent
SMALL_TOOLS = HERE / "Inputs"
BIN = HERE / "Output" / "bin"
COMMANDS = ("tlx", "tlx-lower")
FILECHECK = HERE / "commands" / "file_check.py"


def _llvm(name: str) -> list[str]:
    """Places of a tool of which any recent LLVM will do, Debian's LLVM 19 first."""
    return [f"{name}-19", f"/usr/lib/llvm-19/bin/{name}", name]


# A tool's name in RUN lines, and where it is looked for, best first.
TOOLS: dict[str, list[str]] = {
    **{name: [str(ENVIRONMENT / name)] for name in (*COMMANDS, "tlx-cc", "tlx-c++")},
    "FileCheck": _llvm("FileCheck"),
    "not": [*_llvm("not"), str(SMALL_TOOLS / "not.py")],
    "count": [*_llvm("count"), str(SMALL_TOOLS / "count.py")],
    "split-file": _llvm("split-file"),
    "clang-14": ["clang-14", "/usr/lib/llvm-14/bin/clang"],
    "clang-19": ["clang-19", "/usr/lib/llvm-19/bin/clang"],
    "llc-19": ["llc-19", "/usr/lib/llvm-19/bin/llc"],
    "llvm-mca-19": ["llvm-mca-19", "/usr/lib/llvm-19/bin/llvm-mca"],
    "opt-14": ["opt-14", "/usr/lib/llvm-14/bin/opt"],
    "opt-19": ["opt-19", "/usr/lib/llvm-19/bin/opt"],
}


def _find(places: list[str]) -> str | None:
    return next((path for place in places if (path := shutil.which(place))), None)


def _offer(tool: str, path: str) -> None:
    """Put the tool into ``BIN`` under the name that RUN lines use; another run may be doing the same."""
    place, fresh = BIN / tool, BIN / f".{tool}.{os.getpid()}"
    if tool in COMMANDS:
        _write_script(fresh, HERE / "commands" / "client.py", "-IS")
    elif path == str(FILECHECK):
        _write_script(fresh, FILECHECK, "-I")
    elif place.is_symlink() and str(place.readlink()) == path:
        return
    else:
        fresh.symlink_to(path)
    fresh.replace(place)


def _write_script(place: Path, source: Path, options: str) -> None:
    place.write_text(f"#!{sys.executable} {options}\n{source.read_text(encoding='utf-8')}", encoding="utf-8")
    place.chmod(0o755)


def _host_cpu_features() -> set[str]:
    features = cast("dict[str, bool]", binding.get_host_cpu_features())
    return {name for name, present in features.items() if present}


found = {tool: path for tool, places in TOOLS.items() if (path := _find(places))}
missing = [tool for tool in TOOLS if tool not in found]

if missing and os.environ.get("CI") == "true":
    lit_config.fatal(f"missing tools: {', '.join(missing)}")
if "FileCheck" in found:
    config.available_features.add("llvm-filecheck")
else:
    found["FileCheck"] = str(FILECHECK)
BIN.mkdir(parents=True, exist_ok=True)
for tool, path in found.items():
    _offer(tool, path)
for tool in missing:
    feature = "llvm-filecheck" if tool == "FileCheck" else tool
    lit_config.note(f"{tool} was not found; tests that require {feature} are unsupported")

config.name = "tlx"
config.test_format = ShTest(execute_external=False)
config.suffixes = [".ll", ".test", ".c", ".tl"]
config.excludes = ["Inputs"]
config.test_source_root = str(HERE)
config.test_exec_root = str(HERE)
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%assembly", f"{sys.executable} {HERE.parent / 'support' / 'assembly.py'}"))
config.environment["PATH"] = os.pathsep.join([str(BIN), config.environment["PATH"]])
config.environment["PYTHONPATH"] = str(HERE.parents[1])  # the tree that the tests are part of
config.environment["TLX_SERVER"] = runpy.run_path(str(HERE / "commands" / "server.py"))["start"](config.environment)
config.available_features.update(found, _host_cpu_features(), {f"host-{platform.machine()}"})
if {"opt-19", "llc-19"} <= found.keys():
    config.available_features.add("llvm-19")
