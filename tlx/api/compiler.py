"""Compiled modules: `tlx.compile`, and functions by name as attributes or items."""

from __future__ import annotations

import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tlx.api import files
from tlx.api.call import CompiledFunction, PreparableFunction, Preparation, unsupported_error
from tlx.api.files import FORMAT_BY_NAME, InputFormat
from tlx.api.signatures import Prototype, symbol_name
from tlx.diagnostics import UsageError
from tlx.ir.prepared import preparation_name
from tlx.llvm import openmp
from tlx.llvm.loader import LoadedObject, elf_symbols
from tlx.llvm.triples import with_platform
from tlx.lower.options import STAGE_NAMES, Options

if TYPE_CHECKING:  # a module from the cache is loaded without what lowers and compiles
    from tlx.ir.module import Module
    from tlx.target.target import Target

T = TypeVar("T")


class Namespace(ABC, Generic[T]):
    """Objects by name: as attributes, or as items where the name is no identifier; iteration yields the names."""

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


class FunctionNamespace(Namespace[F]):
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
        if len(self._named) != 1:
            raise UsageError(f"name the function to call, of {_listed(self._named)}")
        return next(iter(self._named.values()))

    def __getitem__(self, name: str) -> F:
        """The function of that name.

        Raises:
            UsageError: There is none, or it cannot be called from numpy.
        """
        if name in self._refused:
            raise self._refused[name]
        if name not in self._named:
            raise UsageError(f"the module defines no function @{name}; it defines {_listed(self._named)}")
        return self._named[name]


class CompiledModule(FunctionNamespace[CompiledFunction]):
    """A compiled module: its functions are attributes, or items where the name is no identifier.

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
    cache: bool | str | os.PathLike[str] = False,
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
    options = (options or Options()).updated(**settings)
    reading = InputFormat(language, std)
    source_input = SourceInput.of(source, reading)
    cached: _CachedCode | None = None
    if cache is not False:
        directory = None if cache is True else cache
        cached = _CachedCode(source_input, target, options, opt_level, reading, directory)
    code = cached and cached.found_by_name()
    if code is None:
        if has_grid(target):
            return _loaded_on_device(source_input, target, options, opt_level, entry, reading, cache)
        compiled = partial(_compiled, source_input, target, entry=entry, opt_level=opt_level, reading=reading)
        code = cached.found_or(compiled) if cached is not None else compiled(options)
    _check_entry(entry, code.defined)
    return code.loaded(entry, libraries)


@dataclass(frozen=True, slots=True)
class SourceInput:
    """What is compiled.

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
    def of(cls, source: Module | str | os.PathLike[str], reading: InputFormat) -> SourceInput:
        """The input for a source that `compile` takes."""
        if isinstance(source, str) and ("\n" in source or "{" in source or not source):
            translated = files.ir_name("-", reading) != files.ir_name("-")
            return cls(f"<string>{' (translated)' * translated}", None, source)
        if isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            return cls(files.ir_name(path, reading), path, files.read_bytes(path))
        from tlx.ir.module import Module

        if not isinstance(cast("object", source), Module):
            raise UsageError(f"tlx.compile takes a module, a text or a path, not an object of {type(source).__name__}")
        if reading != FORMAT_BY_NAME:
            raise UsageError("a module is LLVM IR: language and std apply to texts and files only")
        return cls(source.source.name, None, str(source), is_module=True)

    def text(self, threads: openmp.Workers, reading: InputFormat) -> str:
        """The input as LLVM IR; `threads` runs the work-groups of other languages."""
        if self.path is not None:
            return files.ir_of(cast("bytes", self.contents), self.path, threads, reading)
        text = cast("str", self.contents)
        return text if self.is_module else files.assembly_of(text, "<string>", threads, reading)

    @property
    def data(self) -> bytes:
        """The contents as bytes."""
        return self.contents if isinstance(self.contents, bytes) else self.contents.encode(errors="surrogatepass")


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
    """

    defined: dict[str, Prototype]
    symbols: dict[str, str]
    workspaces: dict[str, int]
    blocks: dict[str, tuple[int, ...]]
    start: str | None
    has_threads: bool
    images: Sequence[bytes]
    lowered: bytes | str

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
                make = partial(PreparableFunction, preparation=preparation)
            functions[name] = make(
                self.defined[name],
                library.address(symbol),
                through_memory=symbol != name,
                owner=library,
                workspace=self.workspaces.get(name, 0),
            )
        return CompiledModule(functions, refused_functions(self.defined), entry, self.lowered)


def has_grid(target: Target | str) -> bool:
    """Whether a target's code runs on a device."""
    from tlx.target.lookup import find_target

    found = find_target(target) if isinstance(target, str) else target
    return found.grid is not None


def _loaded_by_sizes(
    source: SourceInput,
    entry: str | None,
    reading: InputFormat,
    compiled: Callable[[Module, str | None], CompiledModule],
) -> CompiledModule | None:
    """A module for a device, some of whose functions have tensors of run-time sizes; None if none has.

    Args:
        source: The module.
        entry: The function to call.
        reading: Format of the source.
        compiled: Compiles a module without such functions, for a device.
    """
    if b"vscale" not in source.data:
        return None
    from tlx.api.device import DeviceFunction, SizedFunction
    from tlx.api.prototypes import prototypes
    from tlx.ir.parser.module import parse
    from tlx.ir.tensors.inference import verify_tensors
    from tlx.lower.dynamic.known_sizes import functions_of_sizes, with_known_sizes

    module = parse(source.text("grid", reading), source.name)
    sizes = functions_of_sizes(module)
    if not sizes:
        return None
    verify_tensors(module)
    text, defined = str(module), prototypes(module)
    _check_entry(entry, defined)

    def for_sizes(name: str, known: dict[int, int]) -> DeviceFunction:
        function = compiled(with_known_sizes(text, name, known, source.name), name).entry
        assert isinstance(function, DeviceFunction)
        return function

    module.remove(*(function for function in module.functions if function.name in sizes))
    others = dict[str, CompiledFunction]()
    if module.functions:
        rest = compiled(module, None)
        others = {name: rest[name] for name in rest}
    functions = {
        name: SizedFunction(defined[name], numbers, partial(for_sizes, name)) for name, numbers in sizes.items()
    }
    return CompiledModule({**others, **functions}, refused_functions(defined), entry, text)


def _loaded_on_device(
    source: SourceInput,
    target: Target | str,
    options: Options,
    opt_level: int,
    entry: str | None,
    reading: InputFormat,
    cache: bool | str | os.PathLike[str],
) -> CompiledModule:
    """A module, lowered for a device of this machine and loaded there."""

    def of_known_sizes(module: Module, entry: str | None) -> CompiledModule:
        return _loaded_on_device(
            SourceInput.of(module, FORMAT_BY_NAME), target, options, opt_level, entry, FORMAT_BY_NAME, cache
        )

    sized = _loaded_by_sizes(source, entry, reading, of_known_sizes)
    if sized is not None:
        return sized
    from tlx.api.cache import CacheInput, DiskCache, cached
    from tlx.api.device import assembly_of, loaded_functions
    from tlx.target.lookup import find_target, foreign_triple

    grid = (find_target(target) if isinstance(target, str) else target).grid
    assert grid is not None
    device = grid.device()
    changes = {"cpu": options.cpu or device.processor, "triple": options.triple or foreign_triple(target)}
    keyed = CacheInput(source.data, source.name)

    def compute(options: Options) -> list[bytes]:
        lowered = lower_source(source, target, options, entry, reading)
        text = with_platform(str(lowered.module), changes["triple"])
        code = assembly_of(text, device, opt_level)
        return [keyed.dumps(lowered.defined), keyed.compress(text.encode(errors="surrogatepass")), code]

    changed = options.updated(**changes)
    others = {"result": "device", "level": opt_level, "module": source.is_module, "reading": reading}
    others |= {"processor": device.processor, "name": source.name}
    if cache is False:
        facts, text, code = compute(changed)
    else:
        directory = None if cache is True else cache
        facts, text, code = cached(DiskCache(directory), keyed, target, changed, others, compute)
    defined: dict[str, Prototype] = keyed.loads(facts)
    _check_entry(entry, defined)
    lowered = zlib.decompress(text).decode(errors="surrogatepass")
    functions = loaded_functions(lowered, code, defined, device)
    return CompiledModule(dict(functions), refused_functions(defined), entry, lowered)


class _CachedCode:
    """The code of a module in the cache on disk."""

    def __init__(
        self,
        source: SourceInput,
        target: Target | str,
        options: Options,
        opt_level: int,
        reading: InputFormat,
        directory: str | os.PathLike[str] | None,
    ) -> None:
        from tlx.api.cache import CacheInput, DiskCache

        self._cache = DiskCache(directory)
        self._input = CacheInput(source.data, source.name)
        self._target = target
        self._options = options
        suffix = None if source.path is None else os.path.splitext(source.path)[1]  # noqa: PTH122 (a path with a NUL)
        module = source.is_module
        self._others = {"result": "object", "level": opt_level, "suffix": suffix, "module": module, "reading": reading}

    def found_by_name(self) -> _Code | None:
        """The code, if it is in the cache and the target's name determines it; no target is imported."""
        from tlx.api.cache import cached_before
        from tlx.api.cache_key import is_determined_by_name

        if not is_determined_by_name(self._target):
            return None
        sections = cached_before(self._cache, self._input, self._target, self._options, self._others)
        return None if sections is None else self._code(sections)

    def found_or(self, compiled: Callable[[Options], _Code]) -> _Code:
        """The code from the cache, or compiled and added to it."""
        from tlx.api.cache import cached
        from tlx.api.cache_key import is_determined_by_name

        def compute(options: Options) -> list[bytes]:
            code = compiled(options)
            facts = code.defined, code.symbols, code.workspaces, code.blocks, code.start, code.has_threads
            lowered = cast("str", code.lowered).encode(errors="surrogatepass")
            return [self._input.dumps(facts), self._input.compress(lowered), *code.images]

        by_name = self._options.cpu or is_determined_by_name(self._target)
        target = self._target if by_name else _for_host(self._target)
        return self._code(cached(self._cache, self._input, target, self._options, self._others, compute))

    def _code(self, sections: Sequence[bytes]) -> _Code:
        facts, lowered, *images = sections
        defined, symbols, workspaces, blocks, start, has_threads = self._input.loads(facts)
        return _Code(defined, symbols, workspaces, blocks, start, has_threads, images, lowered)


def _compiled(
    source: SourceInput,
    target: Target | str,
    options: Options,
    *,
    opt_level: int,
    entry: str | None,
    reading: InputFormat,
) -> _Code:
    """Lower and compile a module.

    Garbage is not collected until the lowered module is gone, whose objects a collection would visit.
    """
    from tlx.ir.parser.module import without_collection

    with without_collection():
        return _lowered_and_compiled(source, target, options, opt_level, entry, reading)


@dataclass(frozen=True, slots=True)
class LoweredSource:
    """A lowered module, and what its callers must know.

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


def lower_source(
    source: SourceInput, target: Target | str, options: Options, entry: str | None, reading: InputFormat
) -> LoweredSource:
    """Read and lower a module.

    Raises:
        TlxError: The module is wrong or cannot be lowered, or does not define the entry.
    """
    from tlx.api.prototypes import prototypes
    from tlx.api.wrappers import inherited_attributes
    from tlx.ir.parser.module import parse, parse_fully
    from tlx.ir.prepared import block_sizes
    from tlx.lower.memory.allocation import workspace_size
    from tlx.lower.pipeline import concerns_front_ends, lower, raise_front_ends

    name = source.name
    module = parse(source.text("grid" if has_grid(target) else options.threads, reading), name)
    if concerns_front_ends(module.source.text):
        module = parse(str(raise_front_ends(module)), name)
    source_module = module if module.is_parsed_fully else parse_fully(module.source.text, name)
    defined = prototypes(source_module)
    _check_entry(entry, defined)
    source_attributes = inherited_attributes(source_module)
    lowered = lower(module, target, options=options, is_compiled=True)
    attributes = source_attributes | inherited_attributes(lowered)  # it has parsed functions with tensors only
    workspaces = {name: workspace_size(lowered, defined[name].name) or 0 for name in defined}
    blocks = {symbol_name(name): sizes for name, sizes in block_sizes(lowered).items()}
    return LoweredSource(lowered, defined, attributes, workspaces, blocks)


def _lowered_and_compiled(
    source: SourceInput, target: Target | str, options: Options, opt_level: int, entry: str | None, reading: InputFormat
) -> _Code:
    from tlx.api.wrappers import needs_wrapper, wrapper_definition, wrapper_names
    from tlx.ir.builder import GOMP_PARALLEL
    from tlx.ir.transform import collect_constructors
    from tlx.llvm.codegen import CodegenError, emit_objects
    from tlx.llvm.judge import check_module
    from tlx.target.target import matrix_emulations

    host_target = _for_host(target)
    lowered = lower_source(source, host_target if not options.cpu else target, options, entry, reading)
    called = lowered.called
    wrappers = wrapper_names([p.name for p in called if needs_wrapper(p)], lowered.defined)
    text = str(lowered.module)
    code = text + "".join(
        wrapper_definition(lowered.lowered_prototype(name), symbol, lowered.attributes.get(name, ""))
        for name, symbol in wrappers.items()
    )
    code = collect_constructors(code, _START)
    emulations = matrix_emulations() if options.emulate_matrix else []
    level = min(opt_level, *(emulation.opt_level for emulation in emulations)) if emulations else opt_level
    emulating = [option for emulation in emulations for option in emulation.llvm_options]
    try:
        images = emit_objects(code, level, options.cpu, ",".join(options.features), llvm_options=emulating)
    except CodegenError:
        if options.verify_each is None:
            check_module(lowered.module, STAGE_NAMES[-1])  # if it is wrong, the error is that of the lowering
        raise
    exported = {name for image in images for name, defined in elf_symbols(image) if defined}
    symbols = {p.name: wrappers.get(p.name, p.name) for p in called}
    symbols = {name: symbol for name, symbol in symbols.items() if symbol in exported}
    start = _START if _START in exported else None
    has_threads = GOMP_PARALLEL in code
    return _Code(lowered.defined, symbols, lowered.workspaces, lowered.blocks, start, has_threads, images, text)


def refused_functions(defined: Mapping[str, Prototype]) -> dict[str, UsageError]:
    """Errors for the functions that cannot be called from numpy, by name."""
    return {p.name: error for p in defined.values() if (error := unsupported_error(p))}


def _check_entry(entry: str | None, defined: Collection[str]) -> None:
    """Reject an entry that is not defined."""
    if entry is not None and entry not in defined:
        raise UsageError(f"the module defines no function @{entry}; it defines {_listed(defined)}")


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


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"@{name}" for name in names) or "nothing"
