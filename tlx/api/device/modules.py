"""Modules for devices: lowered, compiled to the device's code and loaded there."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tlx.api.cache import CacheEntry, CacheInput, DiskCache
from tlx.api.call import CompiledFunction
from tlx.api.device.functions import DeviceFunction, SizedFunction
from tlx.api.files import FORMAT_BY_NAME
from tlx.api.lowering import Compilation, SourceInput, grid_of, lower_module, read_source
from tlx.api.prototypes import prototypes
from tlx.ir.parser.module import parse
from tlx.ir.tensors.inference import verify_tensors
from tlx.llvm.codegen import emit_code
from tlx.llvm.triples import with_platform
from tlx.lower.dynamic.specialization import size_parameters, specialize
from tlx.target.launches import table_of
from tlx.target.lookup import foreign_triple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tlx.api.signatures import Prototype
    from tlx.ir.module import Module
    from tlx.lower.options import Options
    from tlx.target.grid_unit import Device


@dataclass(frozen=True, slots=True)
class DeviceModule:
    """A module that is loaded on a device.

    Attributes:
        functions: The functions that can be called, by name.
        defined: All functions that it defines, by name.
        lowered: The LLVM IR that was compiled; with sizes that are not known yet, the module.
    """

    functions: dict[str, CompiledFunction]
    defined: dict[str, Prototype]
    lowered: str


def loaded_on_device(compilation: Compilation, cache: DiskCache | None) -> DeviceModule:
    """A module, lowered for a device of this machine and loaded there.

    Functions with tensors of run-time sizes are compiled when they are called.

    Args:
        compilation: The module, for a target with a grid.
        cache: A cache on disk, if there is one.
    """
    source, target, options = compilation.source, compilation.target, compilation.options
    grid = grid_of(target)
    assert grid is not None
    device = grid.find_device()
    device.check_processor(options.cpu)
    known = options.cpu if options.cpu != "native" else ""
    changes = {"cpu": known or device.processor, "triple": options.triple or foreign_triple(target)}
    changed = options.updated(**changes)
    keyed = CacheInput(source.data, source.name)

    def compute(options: Options) -> list[bytes]:
        module = read_source(compilation)
        sizes = size_parameters(module)
        if sizes:
            verify_tensors(module)
            defined, text, code = prototypes(module), str(module), b""
        else:
            lowered = lower_module(module, replace(compilation, options=options))
            defined, text = lowered.defined, with_platform(str(lowered.module), changes["triple"])
            code = assembly_of(text, device, compilation.opt_level)
        return [keyed.dumps((defined, sizes)), keyed.compress(text.encode(errors="surrogatepass")), code]

    if cache is None:
        facts, compressed, code = compute(changed)
    else:
        others = {"result": "device", "level": compilation.opt_level, "module": source.is_module}
        others |= {"input_format": compilation.input_format, "processor": device.processor, "name": source.name}
        facts, compressed, code = CacheEntry(cache, keyed, target, changed, others).get_or_compute(compute)
    defined: dict[str, Prototype]
    sizes: dict[str, tuple[int, ...]]
    defined, sizes = keyed.loads(facts)
    compilation.check_entry(defined)
    text = zlib.decompress(compressed).decode(errors="surrogatepass")
    if sizes:
        return DeviceModule(_compiled_by_sizes(text, defined, sizes, compilation, cache), defined, text)
    return DeviceModule(dict(loaded_functions(text, code, defined, device)), defined, text)


def _compiled_by_sizes(
    text: str,
    defined: Mapping[str, Prototype],
    sizes: Mapping[str, tuple[int, ...]],
    compilation: Compilation,
    cache: DiskCache | None,
) -> dict[str, CompiledFunction]:
    """The functions of a module some of which have tensors of run-time sizes.

    Args:
        text: The module.
        defined: The functions that it defines, by name.
        sizes: The numbers of the parameters that are sizes, for each function that has some.
        compilation: How to compile it.
        cache: A cache on disk, if there is one.
    """

    def loaded(module: Module, entry: str | None) -> dict[str, CompiledFunction]:
        of_module = SourceInput.of(module, FORMAT_BY_NAME)
        known = replace(compilation, source=of_module, input_format=FORMAT_BY_NAME, entry=entry)
        return loaded_on_device(known, cache).functions

    def for_sizes(name: str, known: dict[int, int]) -> DeviceFunction:
        function = loaded(specialize(text, name, known, compilation.source.name), name)[name]
        assert isinstance(function, DeviceFunction)
        return function

    others: dict[str, CompiledFunction] = {}
    if defined.keys() - sizes.keys():
        module = parse(text, compilation.source.name)
        module.remove(*(function for function in module.functions if function.name in sizes))
        others = loaded(module, None)
    functions = {
        name: SizedFunction(defined[name], numbers, partial(for_sizes, name)) for name, numbers in sizes.items()
    }
    return {**others, **functions}


def assembly_of(lowered: str, device: Device, opt_level: int) -> bytes:
    """The assembly of a lowered module for a device, at LLVM's optimisation level.

    Raises:
        TlxError: LLVM refuses the code.
    """
    return emit_code(lowered, "asm", opt_level, device.processor)


def loaded_functions(
    lowered: str, assembly: bytes, defined: Mapping[str, Prototype], device: Device
) -> dict[str, DeviceFunction]:
    """The functions of a lowered module, loaded on a device.

    Args:
        lowered: The module.
        assembly: Its assembly.
        defined: The functions of the input.
        device: The device.

    Raises:
        TlxError: The device refuses the code.
    """
    table = table_of(lowered)
    code = device.load(assembly.decode(), table)
    return {launches.name: DeviceFunction(defined[launches.name], launches, code) for launches in table}
