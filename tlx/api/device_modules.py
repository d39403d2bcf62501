"""Modules for devices: lowered, compiled to the device's code and loaded there."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.api.cache import CacheEntry, CacheInput, DiskCache
from tlx.api.call import CompiledFunction
from tlx.api.device import DeviceFunction, SizedFunction, assembly_of, loaded_functions
from tlx.api.files import FORMAT_BY_NAME
from tlx.api.lowering import Compilation, SourceInput, grid_of, lower_source
from tlx.api.prototypes import prototypes
from tlx.ir.parser.module import parse
from tlx.ir.tensors.inference import verify_tensors
from tlx.llvm.triples import with_platform
from tlx.lower.dynamic.known_sizes import functions_of_sizes, with_known_sizes
from tlx.target.lookup import foreign_triple

if TYPE_CHECKING:
    from tlx.api.signatures import Prototype
    from tlx.ir.module import Module
    from tlx.lower.options import Options


_COMPUTED_SIZES: Final = re.compile(rb"vscale|<\d+ x i32> *%")
"""What a text contains if a function has tensors of run-time sizes; other texts need not be searched for them."""


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
    return _loaded_by_sizes(compilation, cache) or _loaded(compilation, cache)


def _loaded_by_sizes(compilation: Compilation, cache: DiskCache | None) -> DeviceModule | None:
    """A module, some of whose functions have tensors of run-time sizes; None if none has."""
    source = compilation.source
    if not _COMPUTED_SIZES.search(source.data):
        return None
    module = parse(source.text(grid_of(compilation.target) or "none", compilation.reading), source.name)
    sizes = functions_of_sizes(module)
    if not sizes:
        return None
    verify_tensors(module)
    text, defined = str(module), prototypes(module)
    compilation.check_entry(defined)

    def loaded(module: Module, entry: str | None) -> DeviceModule:
        of_module = SourceInput.of(module, FORMAT_BY_NAME)
        return _loaded(replace(compilation, source=of_module, reading=FORMAT_BY_NAME, entry=entry), cache)

    def for_sizes(name: str, known: dict[int, int]) -> DeviceFunction:
        function = loaded(with_known_sizes(text, name, known, source.name), name).functions[name]
        assert isinstance(function, DeviceFunction)
        return function

    module.remove(*(function for function in module.functions if function.name in sizes))
    others = loaded(module, None).functions if module.functions else {}
    functions = {
        name: SizedFunction(defined[name], numbers, partial(for_sizes, name)) for name, numbers in sizes.items()
    }
    return DeviceModule({**others, **functions}, defined, text)


def _loaded(compilation: Compilation, cache: DiskCache | None) -> DeviceModule:
    """A module whose sizes are known."""
    source, target, options = compilation.source, compilation.target, compilation.options
    grid = grid_of(target)
    assert grid is not None
    device = grid.device()
    changes = {"cpu": options.cpu or device.processor, "triple": options.triple or foreign_triple(target)}
    changed = options.updated(**changes)
    keyed = CacheInput(source.data, source.name)

    def compute(options: Options) -> list[bytes]:
        lowered = lower_source(replace(compilation, options=options))
        text = with_platform(str(lowered.module), changes["triple"])
        code = assembly_of(text, device, compilation.opt_level)
        return [keyed.dumps(lowered.defined), keyed.compress(text.encode(errors="surrogatepass")), code]

    if cache is None:
        facts, text, code = compute(changed)
    else:
        others = {"result": "device", "level": compilation.opt_level, "module": source.is_module}
        others |= {"reading": compilation.reading, "processor": device.processor, "name": source.name}
        facts, text, code = CacheEntry(cache, keyed, target, changed, others).found_or(compute)
    defined: dict[str, Prototype] = keyed.loads(facts)
    compilation.check_entry(defined)
    lowered = zlib.decompress(text).decode(errors="surrogatepass")
    functions = loaded_functions(lowered, code, defined, device)
    return DeviceModule(dict(functions), defined, lowered)
