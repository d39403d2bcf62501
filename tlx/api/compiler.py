"""Compiled modules: `tlx.compile`, and functions by name as attributes or items."""

from __future__ import annotations

import os
import string
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from tlx.api import files
from tlx.api.call import CompiledFunction, PreparableFunction, Preparation, passed_by_value, unsupported_error
from tlx.api.files import FORMAT_BY_NAME, InputFormat
from tlx.api.signatures import Parameter, Prototype, prototypes, symbol_name
from tlx.diagnostics import UsageError
from tlx.ir.module import Module
from tlx.ir.prepared import preparation_name
from tlx.ir.types import I1, PTR, VOID, Type, VectorType, exceeds_abi
from tlx.llvm import openmp
from tlx.llvm.loader import LoadedObject, elf_symbols
from tlx.lower.options import STAGE_NAMES, Options

if TYPE_CHECKING:
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


_PREFIX: Final = "tlx.call."
_START: Final = "tlx.start"
_IN_NAMES: Final = frozenset(string.printable.encode()) - frozenset(string.whitespace.encode()) - frozenset(b'"\\')
_INHERITED: Final = ("target-cpu", "target-features")


class CompiledModule(Namespace[CompiledFunction]):
    """A compiled module: its functions are attributes, or items where the name is no identifier.

    Calling the module calls its entry: the function named at compilation, or the only one.

    Args:
        functions: The functions that can be called.
        refused: Errors for those that cannot.
        entry: Name of the entry, if it was named.
        lowered: The LLVM IR that was compiled; as bytes, compressed.
    """

    def __init__(
        self,
        functions: dict[str, CompiledFunction],
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

    def __call__(self, *arguments: Any) -> Any:
        """Call the entry.

        Raises:
            UsageError: There are several functions, and the compilation named no entry.
            ArgumentError: An argument does not fit.
        """
        return self.entry(*arguments)

    @property
    def entry(self) -> CompiledFunction:
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

    def __getitem__(self, name: str) -> CompiledFunction:
        """The function of that name.

        Raises:
            UsageError: There is none, or it cannot be called from numpy.
        """
        if name in self._refused:
            raise self._refused[name]
        if name not in self._named:
            raise UsageError(f"the module defines no function @{name}; it defines {_listed(self._named)}")
        return self._named[name]


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
    source_input = _Input.of(source, reading)
    if cache is False:
        code = _compiled(source_input, target, options, opt_level, entry, reading)
    else:
        code = _cached(source_input, target, options, opt_level, entry, reading, None if cache is True else cache)
    _check_entry(entry, code.defined)
    return code.loaded(entry, libraries)


@dataclass(frozen=True, slots=True)
class _Input:
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
    def of(cls, source: Module | str | os.PathLike[str], reading: InputFormat) -> _Input:
        """The input for a source that `compile` takes."""
        if isinstance(source, Module):
            if reading != FORMAT_BY_NAME:
                raise UsageError("a module is LLVM IR: language and std apply to texts and files only")
            return cls(source.source.name, None, str(source), is_module=True)
        if isinstance(source, str) and ("\n" in source or "{" in source or not source):
            translated = files.ir_name("-", reading) != files.ir_name("-")
            return cls(f"<string>{' (translated)' * translated}", None, source)
        path = os.fspath(source)
        return cls(files.ir_name(path, reading), path, files.read_bytes(path))

    def text(self, threads: openmp.Threads, reading: InputFormat) -> str:
        """The input as LLVM IR; `threads` is for translating other languages."""
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
        return CompiledModule(functions, _refused(self.defined), entry, self.lowered)


def _cached(
    source: _Input,
    target: Target | str,
    options: Options,
    opt_level: int,
    entry: str | None,
    reading: InputFormat,
    directory: str | os.PathLike[str] | None,
) -> _Code:
    """The code of a module from the cache, or compiled and added to it."""
    from tlx.api.cache import CacheInput, DiskCache, cached

    keyed = CacheInput(source.data, source.name)

    def compute(options: Options) -> list[bytes]:
        code = _compiled(source, target, options, opt_level, entry, reading)
        facts = code.defined, code.symbols, code.workspaces, code.blocks, code.start, code.has_threads
        lowered = cast("str", code.lowered).encode(errors="surrogatepass")
        return [keyed.dumps(facts), keyed.compress(lowered), *code.images]

    suffix = None if source.path is None else os.path.splitext(source.path)[1]  # noqa: PTH122 (a path with a NUL)
    others = {"result": "object", "level": opt_level, "suffix": suffix, "module": source.is_module, "reading": reading}
    facts, lowered, *images = cached(
        DiskCache(directory), keyed, target if options.cpu else _for_host(target), options, others, compute
    )
    defined, symbols, workspaces, blocks, start, has_threads = keyed.loads(facts)
    return _Code(defined, symbols, workspaces, blocks, start, has_threads, images, lowered)


def _compiled(
    source: _Input, target: Target | str, options: Options, opt_level: int, entry: str | None, reading: InputFormat
) -> _Code:
    """Lower and compile a module.

    Garbage is not collected until the lowered module is gone, whose objects a collection would visit.
    """
    from tlx.ir.parser.module import without_collection

    with without_collection():
        return _lowered_and_compiled(source, target, options, opt_level, entry, reading)


def _lowered_and_compiled(
    source: _Input, target: Target | str, options: Options, opt_level: int, entry: str | None, reading: InputFormat
) -> _Code:
    from tlx.ir.builder import GOMP_PARALLEL
    from tlx.ir.parser.module import parse, parse_fully
    from tlx.ir.prepared import block_sizes
    from tlx.ir.transform import collect_constructors
    from tlx.llvm.codegen import CodegenError, emit_objects
    from tlx.llvm.judge import check_module
    from tlx.lower.front_ends import concerns_front_ends
    from tlx.lower.memory.allocation import workspace_size
    from tlx.lower.pipeline import lower, raise_front_ends
    from tlx.target.target import matrix_emulations

    name = source.name
    module = parse(source.text(options.threads, reading), name)
    if concerns_front_ends(module.source.text):
        module = parse(str(raise_front_ends(module)), name)
    source_module = module if module.is_parsed_fully else parse_fully(module.source.text, name)
    defined = prototypes(source_module)
    _check_entry(entry, defined)
    source_features = _features(source_module)
    lowered = lower(module, target if options.cpu else _for_host(target), options=options, is_compiled=True)
    refused = _refused(defined)
    called = [p for p in defined.values() if p.name not in refused]
    wrappers = _wrapper_names([p.name for p in called if _needs_wrapper(p)], defined)
    attributes = source_features | _features(lowered)  # `lowered` has parsed functions with tensors only
    workspaces = {name: workspace_size(lowered, defined[name].name) or 0 for name in defined}
    blocks = {symbol_name(name): sizes for name, sizes in block_sizes(lowered).items()}
    lowered_as = {n: _with_workspace(defined[n]) if workspaces[n] else defined[n] for n in wrappers}
    text = str(lowered)
    code = text + "".join(_wrapper(lowered_as[n], symbol, attributes.get(n, "")) for n, symbol in wrappers.items())
    code = collect_constructors(code, _START)
    emulations = matrix_emulations() if options.emulate_matrix else []
    level = min(opt_level, *(emulation.opt_level for emulation in emulations)) if emulations else opt_level
    emulating = [option for emulation in emulations for option in emulation.llvm_options]
    try:
        images = emit_objects(code, level, options.cpu, ",".join(options.features), llvm_options=emulating)
    except CodegenError:
        if options.verify_each is None:
            check_module(lowered, STAGE_NAMES[-1])  # if the module is wrong, the error is that of the lowering
        raise
    exported = {name for image in images for name, defined in elf_symbols(image) if defined}
    symbols = {p.name: wrappers.get(p.name, p.name) for p in called}
    symbols = {name: symbol for name, symbol in symbols.items() if symbol in exported}
    start = _START if _START in exported else None
    return _Code(defined, symbols, workspaces, blocks, start, GOMP_PARALLEL in code, images, text)


def _refused(defined: Mapping[str, Prototype]) -> dict[str, UsageError]:
    """Errors for the functions that cannot be called from numpy, by name."""
    return {p.name: error for p in defined.values() if (error := unsupported_error(p))}


def _check_entry(entry: str | None, defined: Collection[str]) -> None:
    """Reject an entry that is not defined."""
    if entry is not None and entry not in defined:
        raise UsageError(f"the module defines no function @{entry}; it defines {_listed(defined)}")


def _for_host(target: Target | str) -> Target:
    """The target with the instruction costs of this machine."""
    from tlx.target.host import cpu_flags, with_host_dot_costs
    from tlx.target.lookup import find_target

    return with_host_dot_costs(find_target(target) if isinstance(target, str) else target, cpu_flags())


def _wrapper_names(wrapped: Sequence[str], functions: Collection[str]) -> dict[str, str]:
    """The name of each function's wrapper: printable ASCII, and different from all functions."""
    names: dict[str, str] = {}
    for name in wrapped:
        wrapper = _PREFIX + "".join(c if _is_plain(c) else "_" for c in name)
        while wrapper in functions or wrapper in names.values():
            wrapper += "."
        names[name] = wrapper
    return names


def _with_workspace(prototype: Prototype) -> Prototype:
    """The prototype of a lowered function whose caller passes its workspace."""
    return replace(prototype, parameters=(*prototype.parameters, Parameter("%workspace", PTR)))


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


def _needs_wrapper(prototype: Prototype) -> bool:
    """Whether ctypes cannot call the function by its convention or look up its name."""
    types = [p.type for p in prototype.parameters]
    if prototype.result != VOID:
        types.append(prototype.result)
    return not (prototype.is_plain and _is_plain(prototype.name) and all(map(passed_by_value, types)))


def _wrapper(prototype: Prototype, symbol: str, features: str) -> str:
    """A C function that takes pointers to the values that ctypes cannot pass, and calls the function.

    Its features are those of the function, as they determine which registers vectors are passed in.
    """
    parameters: list[str] = []
    body: list[str] = []
    passed: list[tuple[str, str]] = []
    for index, parameter in enumerate(prototype.parameters):
        type_ = parameter.type
        direct = passed_by_value(type_)
        parameters.append(f"{type_ if direct else 'ptr'} %{index}")
        if exceeds_abi(type_):  # the lowered function takes a pointer as well
            passed.append(("ptr", f"%{index}"))
            continue
        passed.append((str(type_), f"{parameter.abi_attributes} %{'' if direct else 'a'}{index}".lstrip()))
        if not direct:
            body.extend(_loaded(type_, index))
    result = prototype.result
    if exceeds_abi(result):
        passed.insert(0, ("ptr", f"%{len(parameters)}"))
        parameters.append(" ".join(passed[0]))
        result = VOID
    call = _call(prototype, result, passed)
    if result == VOID or passed_by_value(result):
        body.extend([call, "ret void"] if result == VOID else [f"%r = {call}", f"ret {result} %r"])
    else:
        parameters.append(f"ptr %{len(parameters)}")
        body.extend([f"%r = {call}", *_stored(result, len(parameters) - 1), "ret void"])
        result = VOID
    lines = "".join(f"  {line}\n" for line in body)
    head = f"define {result} {_quoted(symbol)}({', '.join(parameters)}){features}"
    return f"\n{head} {{\n{lines}}}\n"


def _call(prototype: Prototype, result: Type, passed: Sequence[tuple[str, str]]) -> str:
    """The call of a function, given type and value of each argument, with the attributes of its definition.

    It is marked `notail`: LLVM 22 crashes on tail calls with byval arguments in x86_vectorcallcc.
    """
    type_ = str(result)
    if prototype.variadic:
        type_ = f"{result} ({', '.join([*(type_ for type_, _ in passed), '...'])})"
    words = ("notail call", prototype.convention, "" if result == VOID else prototype.abi_attributes, type_)
    return f"{' '.join(filter(None, words))} {_quoted(prototype.name)}({', '.join(map(' '.join, passed))})"


def _loaded(type_: Type, index: int) -> list[str]:
    """Load an argument; vectors of i1 have a byte for each element."""
    if isinstance(type_, VectorType) and type_.element == I1:
        bytes_ = f"<{type_.count} x i8>"
        return [f"%b{index} = load {bytes_}, ptr %{index}, align 1", f"%a{index} = trunc {bytes_} %b{index} to {type_}"]
    return [f"%a{index} = load {type_}, ptr %{index}, align 1"]


def _stored(type_: Type, index: int) -> list[str]:
    if isinstance(type_, VectorType) and type_.element == I1:
        bytes_ = f"<{type_.count} x i8>"
        return [f"%w = zext {type_} %r to {bytes_}", f"store {bytes_} %w, ptr %{index}, align 1"]
    return [f"store {type_} %r, ptr %{index}, align 1"]


def _features(module: Module) -> dict[str, str]:
    """Processor and features of each function, as attributes."""
    features: dict[str, str] = {}
    for function in module.functions:
        attributes = module.function_attributes(function.signature)
        words = [f' "{key}"="{attributes[key]}"' for key in _INHERITED if key in attributes]
        features[symbol_name(function.name)] = "".join(words)
    return features


def _quoted(name: str) -> str:
    raw = name.encode(errors="surrogateescape")
    escaped = "".join(chr(byte) if byte in _IN_NAMES else f"\\{byte:02X}" for byte in raw)
    return f'@"{escaped}"'


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"@{name}" for name in names) or "nothing"
