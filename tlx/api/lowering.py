"""The input of the Python API (a module, a text or a file), its lowering, and facts that callers need."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tlx.api import files
from tlx.api.arguments import unsupported_error
from tlx.api.files import FORMAT_BY_NAME, InputFormat
from tlx.api.signatures import Prototype, symbol_name
from tlx.diagnostics import UsageError

if TYPE_CHECKING:  # imported late: loading a module from the cache needs no lowering and no compiler
    from tlx.ir.module import Module
    from tlx.llvm import openmp
    from tlx.lower.options import Options
    from tlx.target.grid_unit import GridUnit
    from tlx.target.target import Target


@dataclass(frozen=True, slots=True)
class SourceInput:
    """The input of a compilation.

    Attributes:
        name: Its name in diagnostics.
        path: Its path; None for a text or a module.
        contents: The file's contents, the text, or the module as text.
        is_module: Whether it is a module.
    """

    name: str
    path: str | None
    contents: str | bytes
    is_module: bool = False

    @classmethod
    def of(cls, source: Module | str | os.PathLike[str], input_format: InputFormat) -> SourceInput:
        """The input for a source that `tlx.compile` takes.

        Raises:
            UsageError: It is of another type, or a file that cannot be read.
        """
        if isinstance(source, str) and ("\n" in source or "{" in source or not source):
            translated = files.ir_name("-", input_format) != files.ir_name("-")
            return cls(f"<string>{' (translated)' * translated}", None, source)
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            return cls(files.ir_name(path, input_format), path, files.read_bytes(path))
        from tlx.ir.module import Module

        if not isinstance(cast("object", source), Module):
            raise UsageError(f"tlx.compile takes a module, a text or a path, got {type(source).__name__}")
        if input_format != FORMAT_BY_NAME:
            raise UsageError("a module is LLVM IR: language and std apply to texts and files only")
        return cls(source.source.name, None, str(source), is_module=True)

    def text(self, threads: openmp.Threads | GridUnit, input_format: InputFormat) -> str:
        """The input as LLVM IR; `threads` runs the work-groups of other languages."""
        if self.path is not None:
            return files.ir_of(cast("bytes", self.contents), self.path, threads, input_format)
        text = cast("str", self.contents)
        return text if self.is_module else files.assembly_of(text, "<string>", threads, input_format)

    @property
    def data(self) -> bytes:
        """The contents as bytes."""
        return self.contents if isinstance(self.contents, bytes) else self.contents.encode(errors="surrogatepass")


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compilation: the input, the target and the options.

    Attributes:
        source: The input.
        input_format: The language that it is read as.
        target: The machine to aim at.
        options: Options of the lowering.
        opt_level: LLVM's optimisation level, 0 to 3.
        entry: Name of the function that calling the result calls; None for the only one.

    Raises:
        UsageError: The options stop the lowering before there is code to compile.
    """

    source: SourceInput
    input_format: InputFormat
    target: Target | str
    options: Options
    opt_level: int = 2
    entry: str | None = None

    def __post_init__(self) -> None:
        from tlx.lower.options import STAGE_NAMES

        stage = self.options.stop_after
        if stage not in (None, STAGE_NAMES[-1]):
            remedy = "tlx.lower_text returns the output of that stage"
            raise UsageError(f"stop_after={stage!r} leaves tensor operations, which cannot be compiled: {remedy}")

    def check_entry(self, defined: Collection[str]) -> None:
        """Reject an entry that is not defined.

        Raises:
            UsageError: It is not.
        """
        if self.entry is not None:
            choose_function(defined, self.entry)


@dataclass(frozen=True, slots=True)
class LoweredSource:
    """A lowered module, with facts that its callers need.

    Attributes:
        module: The lowered module.
        defined: The functions that it defines, by name.
        attributes: Processor and features of its functions, as attributes.
        workspaces: Bytes of workspace that functions take as their last argument.
        blocks: Bytes of prepared blocks of functions with arguments that are constant over calls.
    """

    module: Module
    defined: dict[str, Prototype]
    attributes: dict[str, str]
    workspaces: dict[str, int]
    blocks: dict[str, tuple[int, ...]]

    @property
    def called(self) -> list[Prototype]:
        """The functions that can be called from numpy."""
        refused = refused_functions(self.defined)
        return [prototype for prototype in self.defined.values() if prototype.name not in refused]

    def lowered_prototype(self, name: str) -> Prototype:
        """The prototype of a lowered function, with the workspace that its caller passes."""
        from tlx.api.wrappers import with_workspace

        return with_workspace(self.defined[name]) if self.workspaces[name] else self.defined[name]


def read_source(compilation: Compilation) -> Module:
    """The module that is lowered: the input, translated by its front end.

    Raises:
        TlxError: The input is wrong.
    """
    from tlx.ir.parser.module import parse
    from tlx.lower.pipeline import concerns_front_ends, raise_front_ends

    source, threads = compilation.source, grid_of(compilation.target) or compilation.options.threads
    module = parse(source.text(threads, compilation.input_format), source.name)
    if concerns_front_ends(module.source.text):
        module = parse(str(raise_front_ends(module)), source.name)
    return module


def lower_source(compilation: Compilation) -> LoweredSource:
    """Read and lower a module.

    Raises:
        TlxError: The module is wrong or cannot be lowered, or does not define the entry.
    """
    return lower_module(read_source(compilation), compilation)


def lower_module(module: Module, compilation: Compilation) -> LoweredSource:
    """Lower a module that `read_source` has read.

    Raises:
        TlxError: The module is wrong or cannot be lowered, or does not define the entry.
    """
    from tlx.api.prototypes import prototypes
    from tlx.api.wrappers import inherited_attributes
    from tlx.ir.parser.module import parse_fully
    from tlx.ir.prepared import block_sizes
    from tlx.lower.memory.allocation import workspace_size
    from tlx.lower.pipeline import lower

    name, options = compilation.source.name, compilation.options
    source_module = module if module.is_parsed_fully else parse_fully(module.source.text, name)
    defined = prototypes(source_module)
    compilation.check_entry(defined)
    source_attributes = inherited_attributes(source_module)
    lowered = lower(module, compilation.target, options=options, is_compiled=True)
    attributes = source_attributes | inherited_attributes(lowered)  # it has parsed functions with tensors only
    workspaces = {name: workspace_size(lowered, defined[name].name) or 0 for name in defined}
    blocks = {symbol_name(name): sizes for name, sizes in block_sizes(lowered).items()}
    return LoweredSource(lowered, defined, attributes, workspaces, blocks)


def grid_of(target: Target | str) -> GridUnit | None:
    """The grid of a target whose code runs on a device."""
    from tlx.target.lookup import find_target

    found = find_target(target) if isinstance(target, str) else target
    return found.grid


def refused_functions(defined: Mapping[str, Prototype]) -> dict[str, UsageError]:
    """Errors for the functions that cannot be called from numpy, by name."""
    return {p.name: error for p in defined.values() if (error := unsupported_error(p))}


def listed_names(names: Collection[str]) -> str:
    """Names of functions, for a message."""
    return ", ".join(f"@{name}" for name in names) or "nothing"


def choose_function(
    defined: Collection[str], name: str | None, remedy: str = "name the function to call", source: str | None = None
) -> str:
    """The function of a module that is named, or its only one.

    Args:
        defined: Names of the functions that the module defines.
        name: The name, if one is given.
        remedy: How to give one, for the error that says that there are several functions.
        source: Name of the module's file in errors.

    Raises:
        UsageError: There is no such function, or there are several.
    """
    if not defined:
        raise UsageError("the module defines no function", name=source)
    if name is None and len(defined) != 1:
        raise UsageError(f"{remedy}: one of {listed_names(defined)}", name=source)
    if name is not None and name not in defined:
        raise UsageError(f"the module defines no function @{name}; it defines {listed_names(defined)}", name=source)
    return next(iter(defined)) if name is None else name
