"""Compiled modules: `tlx.compile`, and functions by name as attributes or items."""

from __future__ import annotations

import inspect
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tlx.api.cache import CacheEntry, CacheInput, CacheSetting, DiskCache
from tlx.api.call import BlockMemory, CompiledFunction, LoadedCode, PreparableFunction, Preparation
from tlx.api.files import InputFormat
from tlx.api.lowering import (
    Compilation,
    SourceInput,
    choose_function,
    grid_of,
    listed_names,
    lower_source,
    refused_functions,
)
from tlx.api.signatures import Prototype
from tlx.diagnostics import UsageError
from tlx.ir.prepared import preparation_name
from tlx.llvm import openmp
from tlx.llvm.loader import LoadedObject, elf_symbols
from tlx.lower.options import STAGE_NAMES, Options

if TYPE_CHECKING:  # a module from the cache is loaded without what lowers and compiles
    from tlx.ir.module import Module
    from tlx.target.target import Target

T = TypeVar("T")


class Namespace(ABC, Generic[T]):
    """Objects by name: as attributes, or as items where the name is not an identifier; iteration yields the names."""

    def __init__(self, named: Mapping[str, T]) -> None:
        self._named = named

    @abstractmethod
    def __getitem__(self, name: str) -> T:
        """The object of that name.

        Raises:
            UsageError: There is none.
        """

    def __getattr__(self, name: str) -> T:
        """The object of that name.

        Raises:
            AttributeError: There is none.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except UsageError as error:
            raise AttributeError(error.message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._named})


_START: Final = "tlx.start"


F = TypeVar("F")


class FunctionNamespace(LoadedCode, Namespace[F]):
    """The functions of a compiled module by name, and its entry: the function named at compilation, or the only one.

    Args:
        functions: The functions that can be called.
        refused: Errors for those that cannot.
        entry: Name of the entry, if it was named.
        lowered: The LLVM IR that was compiled; as bytes, compressed.
    """

    def __init__(
        self,
        functions: dict[str, F],
        refused: dict[str, UsageError],
        entry: str | None,
        lowered: str | bytes,
    ) -> None:
        super().__init__(functions)
        self._refused = refused
        self._entry = entry
        self._lowered = lowered

    def __repr__(self) -> str:
        return f"<compiled module with {listed_names(self._named)}>"

    @property
    def lowered(self) -> str:
        """The LLVM IR that was compiled."""
        if isinstance(self._lowered, bytes):
            self._lowered = zlib.decompress(self._lowered).decode(errors="surrogatepass")
        return self._lowered

    @property
    def entry(self) -> F:
        """The function that calling the module calls.

        Raises:
            UsageError: There are several functions, and the compilation named no entry.
        """
        if self._entry is not None:
            return self[self._entry]
        if not self._named and len(self._refused) == 1:
            raise next(iter(self._refused.values()))
        return self._named[choose_function(self._named, None)]

    def __getitem__(self, name: str) -> F:
        """The function of that name.

        Raises:
            UsageError: There is none, or it cannot be called from numpy.
        """
        if name in self._refused:
            raise self._refused[name]
        return self._named[choose_function(self._named, name)]


class CompiledModule(FunctionNamespace[CompiledFunction]):
    """A compiled module: its functions are attributes, or items where the name is not an identifier.

    Calling the module calls its entry.
    """

    def __call__(self, *arguments: Any) -> Any:
        """Call the entry.

        Raises:
            UsageError: There are several functions, and the compilation named no entry.
            ArgumentError: An argument does not fit.
        """
        return self.entry(*arguments)


def compile(  # noqa: A001 (tlx.compile is the name)
    source: Module | str | os.PathLike[str],
    target: Target | str = "native",
    *,
    entry: str | None = None,
    opt_level: int = 2,
    options: Options | None = None,
    libraries: Sequence[str] = (),
    language: str = "",
    std: str = "",
    cache: CacheSetting = False,
    **settings: Any,
) -> CompiledModule:
    """Lower and compile a module.

    Args:
        source: A module (it is not changed), a text, or the path of a file.
        target: The machine to aim at, which must be this one; a target or its name.
        entry: Name of the function that is called by calling the result; needed only if there are several.
        opt_level: LLVM's optimisation level, 0 to 3.
        options: Options of the lowering.
        libraries: Shared libraries to load first, for functions that the module calls.
        language: Language of a text or a file, as for `-x`: `ll` or `ir` for LLVM IR, `tl` for the tensor language; by
            default LLVM IR for a text, and by the extension for a file.
        std: Version of that language; its newest by default.
        cache: Whether to load a module from the cache on disk if it has been compiled before, and to add it if not; or
            the directory of the cache.
        **settings: Fields of `tlx.lower.options.Options` that override those of `options`: `threads="openmp"`,
            `cpu="skylake"`.

    Raises:
        TlxError: The module is wrong, cannot be lowered, or calls functions that do not exist; or an option or its
            value is invalid.
    """
    _check_types(target, opt_level=opt_level, options=options, libraries=libraries, cache=cache)
    input_format = InputFormat(language, std)
    options = (options or Options()).updated(**settings)
    compilation = Compilation(SourceInput.of(source, input_format), input_format, target, options, opt_level, entry)
    disk = DiskCache.of(cache)
    cached = None if disk is None else _CachedCode(compilation, disk)
    code = cached and cached.lookup_by_target_name()
    if code is None:
        if grid_of(target) is not None:
            from tlx.api.device.modules import loaded_on_device

            on_device = loaded_on_device(compilation, disk)
            refused = {name: _no_kernels_error(name) for name in on_device.defined if name not in on_device.functions}
            refused |= refused_functions(on_device.defined)
            return CompiledModule(on_device.functions, refused, entry, on_device.lowered)
        code = cached.get_or_compile() if cached is not None else _compiled(compilation)
    compilation.check_entry(code.defined)
    return code.loaded(entry, libraries)


def check_settings(target: Target | str, settings: Mapping[str, Any]) -> None:
    """Check the target and the other arguments of `compile` before the module is read.

    Raises:
        UsageError: There is no such target or option, or an option does not take its value.
    """
    if isinstance(target, str) and target != "native":
        from tlx.target.lookup import find_target

        find_target(target)
    own = inspect.signature(compile).parameters
    options: Options = settings.get("options") or Options()
    options.updated(**{name: value for name, value in settings.items() if name not in own})


_ARGUMENT_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "opt_level": ((int,), "a number"),
    "options": ((Options, type(None)), "tlx.Options"),
    "libraries": ((list, tuple), "a list of paths"),
    "cache": ((bool, str, os.PathLike), "True, False or a directory"),
}


def _check_types(target: object, **arguments: object) -> None:
    """Check the types of arguments of `compile`.

    Raises:
        UsageError: One has a wrong type.
    """
    wrong = [(name, value) for name, value in arguments.items() if not isinstance(value, _ARGUMENT_TYPES[name][0])]
    if wrong:
        name, value = wrong[0]
        raise UsageError(f"invalid value for '{name}': {value!r} is not {_ARGUMENT_TYPES[name][1]}")
    if not isinstance(target, str):
        from tlx.target.target import Target

        if not isinstance(target, Target):
            raise UsageError(f"invalid value for 'target': {target!r} is not a target or the name of one")


def _no_kernels_error(name: str) -> UsageError:
    """The error for a function that a device cannot be asked to run."""
    return UsageError(f"@{name} has no tensor operations, so there are no kernels to launch; run it on the processor")


@dataclass(frozen=True, slots=True)
class _Code:
    """A compiled module, before it is loaded.

    Attributes:
        defined: The functions that it defines, by name.
        symbols: Symbols of the functions that can be called, by name.
        workspaces: Bytes of workspace that functions take as their last argument.
        blocks: Bytes of prepared blocks of functions with arguments that are constant over calls.
        start: Symbol of the function to call once it is loaded, if there is one.
        has_threads: Whether it calls an OpenMP library.
        images: The object files.
        lowered: The LLVM IR that was compiled; as bytes, compressed.
        reserved: Memory of such blocks that has been allocated, by the function's name.
    """

    defined: dict[str, Prototype]
    symbols: dict[str, str]
    workspaces: dict[str, int]
    blocks: dict[str, tuple[int, ...]]
    start: str | None
    has_threads: bool
    images: Sequence[bytes]
    lowered: bytes | str
    reserved: Mapping[str, BlockMemory] = field(default_factory=dict[str, BlockMemory])

    def loaded(self, entry: str | None, libraries: Sequence[str]) -> CompiledModule:
        """The module in this process."""
        if self.has_threads:
            runtime = openmp.openmp_library()
            openmp.prepare_for_forks(runtime)
            libraries = (*libraries, runtime)
        preparations = {name: preparation_name(name) for name in self.symbols if name in self.blocks}
        library = LoadedObject(self.images, [*self.symbols.values(), *preparations.values()], libraries, self.start)
        functions: dict[str, CompiledFunction] = {}
        for name, symbol in self.symbols.items():
            make = CompiledFunction
            if name in preparations:
                numbers = tuple(n for n, p in enumerate(self.defined[name].parameters) if p.is_constant)
                preparation = Preparation(library.address(preparations[name]), numbers, self.blocks[name])
                make = partial(PreparableFunction, preparation=preparation, reserved=self.reserved.get(name))
            functions[name] = make(
                self.defined[name],
                library.address(symbol),
                through_memory=symbol != name,
                owner=library,
                workspace=self.workspaces.get(name, 0),
            )
        return CompiledModule(functions, refused_functions(self.defined), entry, self.lowered)


class _CachedCode:
    """The code of a compilation for this machine in the cache on disk."""

    def __init__(self, compilation: Compilation, cache: DiskCache) -> None:
        from tlx.api.cache_key import is_determined_by_name

        self._cache = cache
        self._compilation = compilation
        self._input = CacheInput(compilation.source.data, compilation.source.name)
        target = compilation.target
        self._by_name = self._entry(target) if is_determined_by_name(target) else None

    def lookup_by_target_name(self) -> _Code | None:
        """The code, if it is in the cache and the target's name determines it; no target is imported."""
        return (
            self._code(self._by_name.cached_result)
            if self._by_name is not None and self._by_name.cached_result
            else None
        )

    def get_or_compile(self) -> _Code:
        """The code from the cache, or compiled and added to it."""
        reserved: dict[str, BlockMemory] = {}

        def compute(options: Options) -> list[bytes]:
            code = _compiled(replace(self._compilation, options=options))
            reserved.update(code.reserved)
            facts = code.defined, code.symbols, code.workspaces, code.blocks, code.start, code.has_threads
            lowered = cast("str", code.lowered).encode(errors="surrogatepass")
            return [self._input.dumps(facts), self._input.compress(lowered), *code.images]

        target = self._compilation.target
        entry = self._by_name or self._entry(target if self._compilation.options.cpu else _for_host(target))
        return replace(self._code(entry.get_or_compute(compute)), reserved=reserved)

    def _entry(self, target: Target | str) -> CacheEntry:
        source = self._compilation.source
        suffix = None if source.path is None else os.path.splitext(source.path)[1]  # noqa: PTH122 (a path with a NUL)
        others = {"result": "object", "level": self._compilation.opt_level, "suffix": suffix}
        others |= {"module": source.is_module, "input_format": self._compilation.input_format}
        return CacheEntry(self._cache, self._input, target, self._compilation.options, others)

    def _code(self, sections: Sequence[bytes]) -> _Code:
        facts, lowered, *images = sections
        defined, symbols, workspaces, blocks, start, has_threads = self._input.loads(facts)
        return _Code(defined, symbols, workspaces, blocks, start, has_threads, images, lowered)


def _compiled(compilation: Compilation) -> _Code:
    """Lower and compile a module.

    Garbage is not collected until the lowered module is gone, whose objects a collection would visit.
    """
    from tlx.llvm.process import llvm

    llvm().start()  # while the lowering is imported
    from tlx.ir.parser.module import without_collection

    with without_collection():
        return _lowered_and_compiled(compilation)


def _lowered_and_compiled(compilation: Compilation) -> _Code:
    from tlx.api.wrappers import needs_wrapper, wrapper_definition, wrapper_names
    from tlx.ir.builder import GOMP_PARALLEL
    from tlx.ir.transform import collect_constructors
    from tlx.llvm.codegen import CodegenError, emit_objects
    from tlx.llvm.verification import check_module
    from tlx.target.installed import matrix_emulations

    options = compilation.options
    host_target = _for_host(compilation.target)
    lowered = lower_source(compilation if options.cpu else replace(compilation, target=host_target))
    called = lowered.called
    wrappers = wrapper_names([p.name for p in called if needs_wrapper(p)], lowered.defined)
    text = str(lowered.module)
    code = text + "".join(
        wrapper_definition(lowered.lowered_prototype(name), symbol, lowered.attributes.get(name, ""))
        for name, symbol in wrappers.items()
    )
    code = collect_constructors(code, _START)
    emulations = matrix_emulations() if options.emulate_matrix else []
    level = min([compilation.opt_level, *(emulation.opt_level for emulation in emulations)])
    emulating = [option for emulation in emulations for option in emulation.llvm_options]
    reserved = _reserved_blocks(lowered.blocks, compilation.entry)
    try:
        images = emit_objects(code, level, options.cpu, ",".join(options.features), llvm_options=emulating)
    except CodegenError:
        if not options.verify_each:
            check_module(lowered.module, STAGE_NAMES[-1])  # if it is wrong, the error is that of the lowering
        raise
    exported = {name for image in images for name, defined in elf_symbols(image) if defined}
    symbols = {p.name: wrappers.get(p.name, p.name) for p in called}
    symbols = {name: symbol for name, symbol in symbols.items() if symbol in exported}
    start = _START if _START in exported else None
    has_threads = GOMP_PARALLEL in code
    return _Code(
        lowered.defined, symbols, lowered.workspaces, lowered.blocks, start, has_threads, images, text, reserved
    )


def _reserved_blocks(sizes: Mapping[str, tuple[int, ...]], entry: str | None) -> dict[str, BlockMemory]:
    """Memory for the blocks of the entry, whose pages a thread touches while LLVM compiles.

    Nothing is reserved where memory is short: only a preparation needs it.

    Args:
        sizes: Bytes of the blocks of each function that has any.
        entry: Name of the entry; None for the only function with blocks.
    """
    names = list(sizes) if entry is None else [entry]
    if len(names) != 1 or names[0] not in sizes:
        return {}
    try:
        memory = BlockMemory(sizes[names[0]])
    except MemoryError:
        return {}
    memory.touch()
    return {names[0]: memory}


def _for_host(target: Target | str) -> Target:
    """The target with the instruction costs of this machine.

    Raises:
        UsageError: The target is for another architecture.
    """
    from tlx.target.host import cpu_flags, with_host_dot_costs
    from tlx.target.lookup import find_target, foreign_triple

    if triple := foreign_triple(target):
        name = target if isinstance(target, str) else target.name
        raise UsageError(f"target {name} is for {triple}, not for this machine: run its code under an emulator")
    return with_host_dot_costs(find_target(target) if isinstance(target, str) else target, cpu_flags())
