"""The pipeline: a flat list of steps from TLX IR to plain LLVM IR, each verified by LLVM."""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
import traceback
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final, cast

from tlx.diagnostics import LoweringError, Source, Span, TlxError, TlxWarning, UsageError, warn
from tlx.intrinsics.small_floats import MARKER
from tlx.ir.parser.module import first_typed_pointer, without_collection
from tlx.ir.prepared import CONSTANT
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.types import has_large_vectors
from tlx.llvm.triples import triple_of
from tlx.lower.context import FEATURES_ATTRIBUTE, LoweringContext, PipelineStep
from tlx.lower.knobs import TrackedKnobSource
from tlx.lower.legalize import legalize
from tlx.lower.legalize.math.grid_library import calls_library
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d import to_2d
from tlx.lower.to_tiles import to_tiles
from tlx.target.discovery import FRONT_END_GROUP, load_entry_point, named_entry_point, provided_entry_points
from tlx.target.instructions.compilers import LAST_WITH_TYPED_POINTERS, OLDEST_LLVM
from tlx.target.lookup import added_features, find_target, resolve_target

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tlx.ir.module import Module
    from tlx.llvm.verification import DeferredVerification
    from tlx.target.target import Target


def _to_tiles_or_blocks(module: Module, context: LoweringContext) -> None:
    """Stage 2 of the target."""
    if context.target.grid is not None:
        from tlx.lower.to_blocks import to_blocks  # processors do without it: their start is shorter

        to_blocks(module, context)
    else:
        to_tiles(module, context)


STAGES: Final = (
    PipelineStep("to-2d", "LowerTensorsTo2D", to_2d),
    PipelineStep("to-tiles", "Lower2DToTiles", _to_tiles_or_blocks),
    PipelineStep("legalize", "LegalizeTiles", legalize),
)
UNVERIFIED_SIZE: Final = 4 << 20  # LLVM needs nine times a text's size in memory, and several times TLX's time
_DEFAULT: Final = Options()


def lower(
    module: Module, target: Target | str = "native", *, options: Options = _DEFAULT, is_compiled: bool = False
) -> Module:
    """Lower a module in place.

    Args:
        module: The module; it is changed.
        target: The target, or its name.
        options: How to lower.
        is_compiled: Whether LLVM compiles the result next and verifies it then, not here as well; the options may still
            request that it is verified here.

    Returns:
        The lowered module (a new one where a front end rebuilt it).

    Raises:
        ParseError, VerifyError: The input is not valid IR, or breaks a rule of the tensor intrinsics.
        LoweringError: A function cannot be lowered.
        UsageError: There is no such target.
    """
    from tlx.ir.parser.duplicates import outlined_region
    from tlx.ir.parser.module import parse

    triple = options.triple or triple_of(module.source.text)
    context = LoweringContext(_resolved(target, options, triple), options, _run_kernel)
    source = module.source
    has_outlined = any(outlined_region(function) for function in module.functions)
    try:
        with without_collection():
            lowered = _lowered(module, context, options, is_compiled=is_compiled)
    except Exception as error:
        if has_outlined or (options.verify_each is False and _blames_tlx(error)):
            verify(raise_front_ends(parse(source.text, source.name)))
        if options.start_after is not None and _blames_tlx(error):
            message = f"the input is not the output of {options.start_after}, which --start-after expects"
            raise LoweringError(f"{message}; without --start-after all stages run", name=source.name) from error
        raise
    if options.stop_after != "to-2d" and isinstance(options.knobs, TrackedKnobSource):
        for message, span in options.knobs.unused():
            options.remarks.add("analysis", "to-tiles", message, span)
    return lowered


def _resolved(target: Target | str, options: Options, triple: str) -> Target:
    """The target with the options' processor, features and width of vectors."""
    resolved = resolve_target(
        target, cpu=options.cpu, features=options.features, vector_bits=options.vector_bits, triple=triple
    )
    if resolved.grid is not None:
        allowed = resolved.grid.tf32_products if options.float_products == "tf32" else ()
        if options.fp8_products == "tensor-cores":
            allowed += resolved.grid.fp8_products
            if not resolved.grid.fp8_products:
                products = f"{resolved.default_cpu} has no products of 8-bit floats"
                message = f"{products}: they are converted first (--fp8-products=exact)"
                options.remarks.add("missed", "to-2d", message)
        resolved = replace(resolved, grid=replace(resolved.grid, products=allowed + resolved.grid.products))
    return resolved if options.decision_seed is None else resolved.with_decision_seed(options.decision_seed)


def _lowered(module: Module, context: LoweringContext, options: Options, *, is_compiled: bool) -> Module:
    """Run the steps. Before compilation, LLVM verifies the output of a stage while the next one runs.

    If it rejects one, the steps run again, each verified before the next one starts, for the error.
    """
    from tlx.ir.parser.module import parse

    remarks = len(options.remarks.items)
    verifications: list[DeferredVerification] | None = [] if is_compiled and options.verify_each is None else None
    try:
        try:
            lowered = _run_steps(module, context, options, verifications)
        except Exception:
            if _are_accepted(verifications):
                raise
        else:
            if _are_accepted(verifications):
                return lowered
    finally:  # after an interrupt or a rejection, others may still run
        for verification in verifications or ():
            verification.cancel()
    options.remarks.truncate(remarks)
    context = LoweringContext(context.target, options, _run_kernel)
    return _run_steps(parse(module.source.text, module.source.name), context, options, None)


def _are_accepted(verifications: Iterable[DeferredVerification] | None) -> bool:
    return all(verification.is_accepted() for verification in verifications or ())


def _run_steps(
    module: Module, context: LoweringContext, options: Options, verifications: list[DeferredVerification] | None
) -> Module:
    """Run the steps.

    Args:
        module: The module.
        context: Target and options.
        options: The options.
        verifications: Where to add those of all stages' outputs but the last, which LLVM compiles next. It verifies
            an output while the next stage runs. None: it verifies each one before the next stage runs.
    """
    unverified = ["raise", "verify", *STAGE_NAMES[-1:] * (verifications is not None)]
    if options.verify_each is not False:
        _verify_for_front_ends(module)
    for step in steps():
        if step.name in STAGE_NAMES and step.name not in options.stages:
            continue
        module = step.run(module, context) or module
        if options.verify_each is not False and step.name not in unverified:
            _verify_step(module, step, options, verifications)
        if options.print_after:
            options.print_after(step, module)
    if options.stop_after in (None, STAGE_NAMES[-1]):
        _refuse_leftovers(module)
    if module.functions:
        module.drop_summary()
    return module


def _blames_tlx(error: Exception) -> bool:
    """Whether an error is a bug in TLX, provided that LLVM accepts the input."""
    return not isinstance(error, TlxError) or "bug in TLX" in error.message


def lower_text(
    text: str,
    filename: str = "<string>",
    target: Target | str = "native",
    *,
    options: Options = _DEFAULT,
    is_compiled: bool = False,
) -> str:
    """Lower LLVM assembly; a text without work (`has_work`) is returned unchanged, verified if it is small.

    Arguments as for `lower`.

    Raises:
        TlxError: See `lower`.
    """
    if options.print_after is None and not has_work(text) and not _needs_library(text, target):
        if target != "native":
            has_features = options.features or options.cpu or added_features(target)  # else any architecture will do
            _resolved(target, options, (options.triple or triple_of(text)) if has_features else "")
        _verify_untouched(text, filename, options)
        return text
    from tlx.ir.parser.module import needs_lowering, parse

    def is_parsed(function: str) -> bool:
        """Whether a function is parsed; with --start-after, also if it calls kernels."""
        return needs_lowering(function) or (options.start_after is not None and "tlx." in function)

    finds_duplicates = not concerns_front_ends(text)  # a front end reads the whole text
    outline = finds_duplicates and options.start_after is None
    module = parse(text, filename, is_parsed, duplicates=finds_duplicates, outline=outline)
    _remark_duplicates(module, options.remarks)
    if not is_compiled and options.stop_after in (None, STAGE_NAMES[-1]):
        _check_compiler(module, _resolved(target, options, options.triple or triple_of(text)), options)
    return str(lower(module, target, options=options, is_compiled=is_compiled))


def _check_compiler(module: Module, target: Target, options: Options) -> None:
    """Refuse to write code that no LLVM compiles which reads it; report the first version that does.

    A module with typed pointers comes from an old LLVM, so it is warned of that.

    Raises:
        LoweringError: The module has typed pointers, which only versions read that do not compile the target's code.
    """
    first, reasons = target.compiler
    names = " and ".join(reasons)
    place = first_typed_pointer(module.source.text) if module.typed_pointers and first > OLDEST_LLVM else None
    span = None if place is None else Span(module.source, *place)
    if module.typed_pointers and first > LAST_WITH_TYPED_POINTERS:
        message = (
            f"code with {names} needs LLVM {first} or later, but only LLVM {LAST_WITH_TYPED_POINTERS} and older read "
            "typed pointers such as 'float*'; write 'ptr', or have TLX compile the code with --emit=obj"
        )
        raise LoweringError(message, span, name=module.source.name)
    if span is not None:
        message = (
            f"code with {names} needs LLVM {first} or later; older versions, which also read typed pointers such as "
            "'float*', fail or write wrong code: compile with that version, or have TLX do it with --emit=obj"
        )
        warn(TlxWarning(message, span))
    if first > OLDEST_LLVM:
        options.remarks.add("analysis", "legalize", f"code with {names} needs LLVM {first} or later")


def has_work(text: str) -> bool:
    """Whether a text has tensor operations, conversions of small floats, large vectors, or work for front ends."""
    if any(word in text for word in ("llvm.tensor.", "llvm.vector.totensor", FEATURES_ATTRIBUTE, CONSTANT, MARKER)):
        return True
    return concerns_front_ends(text) or has_large_vectors(text)


def _needs_library(text: str, target: Target | str) -> bool:
    """Whether functions without tensor operations call functions for which the target's LLVM has no code."""
    return calls_library(text) and (find_target(target) if isinstance(target, str) else target).grid is not None


def steps() -> list[PipelineStep]:
    """The steps, in order."""
    return [
        PipelineStep("raise", "RaiseFrontEnds", _raise),
        PipelineStep("verify", "VerifyTensors", _verify_tensors),
        PipelineStep("canonicalise", "CanonicaliseTensors", _canonicalise),
        *STAGES,
    ]


@cache
def front_ends() -> tuple[ModuleType, ...]:
    """All front ends: the modules of `tlx.frontends`, then those of other packages' entry points.

    A front end that raises LLVM IR has `RAISE`, which takes a module and returns the raised one, or None if there is
    nothing to raise. With `MARKERS`, it is only applied to texts that contain one of these words.

    A front end for a language has `TRANSLATE`, which takes a text, its name, the library that runs threads, and a
    version of the language, and returns LLVM assembly, or a module whose `str` is LLVM assembly; `LANGUAGE` and
    `TITLE`, the language's name in options and in messages; `STANDARDS`, its versions, the default last; `SUFFIXES`,
    the endings of file names; and `OPENINGS`, words with which a text begins.

    A front end for files that are not text, such as models, has `READ` in place of `TRANSLATE`: it takes the bytes of a
    file and its name. Its `STANDARDS` are empty.

    Raises:
        UsageError: A front end of another package cannot be loaded, or lacks one of these names.
    """
    package = importlib.import_module(FRONT_END_GROUP)
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    own = [importlib.import_module(f"{FRONT_END_GROUP}.{name}") for name in names]
    return (*own, *(front_end for front_end, _ in provided_front_ends()))


@cache
def provided_front_ends() -> tuple[tuple[ModuleType, EntryPoint], ...]:
    """The front ends of other packages, each with its entry point.

    Raises:
        UsageError: One cannot be loaded, or lacks a name that it must have.
    """
    entries = provided_entry_points(FRONT_END_GROUP)
    return tuple((_checked(load_entry_point(entry, "front end")), entry) for entry in entries)


def _checked(front_end: ModuleType) -> ModuleType:
    if not any(hasattr(front_end, name) for name in ("RAISE", "TRANSLATE", "READ")):
        raise UsageError(f"front end {front_end.__name__} defines none of RAISE, TRANSLATE and READ")
    if hasattr(front_end, "TRANSLATE") and not front_end.STANDARDS:
        raise UsageError(f"front end {front_end.__name__}: STANDARDS is empty; name the versions of the language")
    return front_end


def concerns_front_ends(text: str) -> bool:
    """Whether some front end may raise a text."""
    return any(_concerns(front_end, text) for front_end in front_ends())


def raised(module: Module) -> Module:
    """The module with the calls of front ends' placeholder functions turned into tensor operations."""
    for front_end in front_ends():
        if _concerns(front_end, module.source.text):
            module = call_front_end(front_end, "RAISE", module) or module
    return module


def call_front_end(front_end: ModuleType, function: str, *arguments: object) -> Any:
    """Call `RAISE`, `TRANSLATE` or `READ` of a front end.

    Raises:
        UsageError: The front end is another package's, and raises an exception that is no `TlxError`, or returns
            neither a module nor its text.
        TlxError: The front end rejects the input.
    """
    from tlx.ir.module import Module

    entry = next((entry for provided, entry in provided_front_ends() if provided is front_end), None)
    if entry is None:
        return getattr(front_end, function)(*arguments)
    expected = (Module, NoneType) if function == "RAISE" else (Module, str)
    try:
        result = getattr(front_end, function)(*arguments)
    except (TlxError, MemoryError, RecursionError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())
        reason = f"raises {type(error).__name__}: {text} ({frame.filename}:{frame.lineno})"
        raise _front_end_error(entry, function, reason) from error
    if not isinstance(result, expected):
        names = " or ".join("None" if type_ is NoneType else type_.__name__ for type_ in expected)
        raise _front_end_error(entry, function, f"returns {type(result).__name__}, not {names}")
    return result


def _front_end_error(entry: EntryPoint, function: str, reason: str) -> UsageError:
    where = named_entry_point(entry, "front end")
    return UsageError(
        f"{where}: {function} {reason}; this is a bug in the package, not in TLX: report it to its authors"
    )


def _concerns(front_end: ModuleType, text: str) -> bool:
    if not hasattr(front_end, "RAISE"):
        return False
    markers = cast("Iterable[str] | None", getattr(front_end, "MARKERS", None))
    return markers is None or any(marker in text for marker in markers)


def raise_front_ends(module: Module) -> Module:
    """The module with the calls of front ends' placeholder functions turned into tensor operations.

    Raises:
        ParseError, VerifyError: The module is not valid, or misuses a front end's functions.
    """
    _verify_for_front_ends(module)
    return raised(module)


def _verify_for_front_ends(module: Module) -> None:
    """Check the input of front ends, which rely on rules of LLVM, such as one definition of a name."""
    if concerns_front_ends(module.source.text):
        from tlx.ir.parser.module import parse

        verify(parse(str(module), module.source.name))


def verify(module: Module) -> None:
    """Check a module like the input of the lowering: the rules of the tensor intrinsics, then LLVM's.

    Tensor calls become canonical in place, since LLVM has no overloads of one name.

    Raises:
        ParseError, VerifyError: The module is not valid.
    """
    from tlx.ir.tensors.calls import canonicalise
    from tlx.ir.tensors.inference import verify_tensors
    from tlx.llvm.verification import check_module

    verify_tensors(module)
    canonicalise(module)
    check_module(module)


_EVALUATED: Final = 1 << 18
"""Bytes of a kernel's result up to which evaluating it (one second for 1 MB) is faster than compiling it."""
_BUFFER_ALIGN: Final = 64
_OVERREAD: Final = 4096  # bytes that a vector load which begins in a constant may read past its end


def _run_kernel(module: Module, name: str, constant: bytes, offset: int, size: int) -> bytes:
    """Run a kernel on a constant at compile time; see `tlx.lower.context.KernelRunner`."""
    if size <= _EVALUATED:
        from tlx.evaluate import Machine

        machine = Machine(module)
        source = machine.memory.add(memoryview(constant), "constant", _BUFFER_ALIGN, writable=False)
        result = machine.memory.allocate(size, "result", _BUFFER_ALIGN)
        result.data[:] = bytes(size)
        machine.call(name, result.base, source.base + offset)
        return bytes(result.data)
    from tlx.ir.parser.module import parse
    from tlx.llvm.codegen import emit_code
    from tlx.llvm.loader import LoadedObject

    text = str(lower(parse(str(module).replace("define internal void", "define void", 1)), "generic"))
    library = LoadedObject(emit_code(text, "obj", 1, jit=True), [name])
    source, result = bytearray(len(constant) + _BUFFER_ALIGN + _OVERREAD), bytearray(size + _BUFFER_ALIGN)
    source[: len(constant)] = constant
    start, destination = (ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in (source, result))
    gap = -destination % _BUFFER_ALIGN
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address(name))(destination + gap, start + offset)
    return bytes(result[gap : gap + size])


def _verify_untouched(text: str, filename: str, options: Options) -> None:
    """Have LLVM verify a text that is returned unchanged, unless it is large: only verifying would take time."""
    if options.verify_each or (options.verify_each is None and len(text) <= UNVERIFIED_SIZE):
        from tlx.llvm.verification import check_text

        check_text(text, filename)
    elif options.verify_each is None:
        size = f"{len(text) / 1e6:.1f} MB"
        message = f"{size} without tensor operations returned unchecked; --verify-each has LLVM check it"
        first_line = Source(filename, text[: text.find("\n") + 1] or text)
        options.remarks.add("analysis", "verify", message, first_line.span(0))


def _remark_duplicates(module: Module, remarks: Remarks) -> None:
    from tlx.ir.functions import DuplicateFunction, Function
    from tlx.ir.parser.duplicates import outlined_region

    for item in module.items:
        if isinstance(item, DuplicateFunction):
            original = item.original.name
            message = f"@{item.name} equals @{original}, which is lowered once: its remarks apply to both"
            remarks.add("analysis", "read", message, item.span)
        region = outlined_region(item)
        if isinstance(item, Function) and region is not None and region.copies:
            message = f"{region.copies} more copies of this region are calls to @{item.name}, which is lowered once"
            remarks.add("analysis", "read", message, item.span)


def _raise(module: Module, _context: LoweringContext) -> Module:
    return raised(module)


def _verify_tensors(module: Module, _context: LoweringContext) -> Module:
    from tlx.ir.tensors.inference import verify_tensors

    verify_tensors(module)
    return module


def _canonicalise(module: Module, _context: LoweringContext) -> Module:
    from tlx.ir.tensors.calls import canonicalise

    canonicalise(module)
    return module


def _verify_step(
    module: Module, step: PipelineStep, options: Options, verifications: list[DeferredVerification] | None
) -> None:
    """Have LLVM verify the output of a step; the next stage, if there is one, checks the rules of tensors."""
    from tlx.ir.tensors.inference import verify_tensors
    from tlx.llvm.verification import DeferredVerification, check_module

    if step.name == "canonicalise":
        check_module(module)
        return
    if options.verify_each or step.name == options.stop_after:
        verify_tensors(module)
    if verifications is not None and not options.print_after:
        verification = DeferredVerification(module)
        verifications.append(verification)
        verification.start()
    else:
        check_module(module, step.name)


def _refuse_leftovers(module: Module) -> None:
    """No tensor operation may reach LLVM's code generator: it would crash."""
    for function in module.functions:
        for instruction in function.instructions():
            if is_tensor_call(instruction):
                name = instruction.callee
                message = f"@{name} is left after lowering; this is a bug in TLX: please report it with the input"
                raise LoweringError(message, instruction.span or function.span, name=module.source.name)
