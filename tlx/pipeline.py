"""The lowering as a flat list of named steps.

    raise         calls of a front end's placeholder functions become tensor intrinsics
    verify        the rules of the tensor intrinsics hold
    canonicalise  every tensor call has its canonical name and a declaration
    to-2d  to-tiles  legalize
                  the three stages (`tlx.lower.STAGES`)

After canonicalise and after each stage, LLVM judges the module; a step that leaves something LLVM rejects is at fault.

Which features a kernel uses: those of the target; the optional ones (dot products) as `Options.cpu` (`--mcpu`) has
them, or else as the function around has them where it is compiled for such a machine; changed by `Options.attrs`
(`--mattr`).
Kernels carry their features as function attributes of their own, so that they work inside any program. Functions
without tensor operations keep the attributes they have.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

from tlx.asked_target import TARGET_FEATURES, added_features, asked_target, triple_of
from tlx.collection import without_collection
from tlx.diagnostics import LoweringError, Source, TlxError, UsageError
from tlx.ir.large import has_large_vectors
from tlx.knobs import WEIGHT_BYTES, Answers, Tracked, no_answers
from tlx.openmp import THREAD_CYCLES, THREADS, Threads
from tlx.remarks import Remarks

if TYPE_CHECKING:
    from tlx.ir.module import Module
    from tlx.lower.stage import Context
    from tlx.target import Target

FRONT_ENDS: Final = "tlx.frontends"
STAGE_NAMES: Final = ("to-2d", "to-tiles", "legalize")
VECTOR_BITS: Final = (0, 128, 256, 512)
UNJUDGED_SIZE: Final = 4 << 20  # LLVM needs nine times a text's size in memory, and several times as long as we do


@dataclass(frozen=True, slots=True)
class Step:
    """One named step.

    Attributes:
        name: What `--stop-after=` and `--print-after=` call it.
        title: What messages and the banner of `--print-after` call it.
        run: The step; gives the module to go on with.
    """

    name: str
    title: str
    run: Callable[[Module, Context], Module]


@dataclass(frozen=True, slots=True)
class Options:
    """How to lower.

    Attributes:
        start_after: Name of the stage whose output the input is; None where it has been through none.
        stop_after: Name of the last stage to run; None for all.
        verify_each: Have LLVM judge the input and what each step leaves; None for all but large text (`UNJUDGED_SIZE`)
            that comes back as it is.
        print_after: Called with each step and the module it leaves.
        remarks: Where decisions are noted.
        cpu: Processor whose optional features are used and that code is scheduled for, empty for any.
        attrs: Features added to (`+avx512bf16`) or taken from (`-amx-bf16`) the target's.
        triple: Triple of the machine, in place of the module's own; empty for that.
        vector_bits: Bits of a vector register, where the target leaves them open; 0 for what the target says.
        amx_permission: Whether a module with AMX code asks the kernel for tile permission in a constructor.
        emulate_matrix: Emit matrix-unit code in the form that LLVM's scalarisation can run on any machine.
        knobs: What is asked of products, in place of what the target's model would choose; see `tlx.knobs`.
        threads: What runs large kernels on several threads.
        thread_cycles: Cycles of work that are worth a thread; 0 has everything on several threads, for tests.
        weight_bytes: Bytes of panels up to which a constant B is packed at compile time.
    """

    start_after: str | None = None
    stop_after: str | None = None
    verify_each: bool | None = None
    print_after: Callable[[Step, Module], None] | None = None
    remarks: Remarks = field(default_factory=Remarks)
    cpu: str = ""
    attrs: tuple[str, ...] = ()
    triple: str = ""
    vector_bits: int = 0
    amx_permission: bool = True
    emulate_matrix: bool = False
    knobs: Answers = no_answers
    threads: Threads = "none"
    thread_cycles: int = THREAD_CYCLES
    weight_bytes: int = WEIGHT_BYTES

    def __post_init__(self) -> None:
        if self.threads not in THREADS:
            raise UsageError(f"unknown threads '{self.threads}'; known are {', '.join(THREADS)}")
        for name in (self.start_after, self.stop_after):
            if name is not None and name not in STAGE_NAMES:
                raise UsageError(f"unknown stage '{name}'; stages are {', '.join(STAGE_NAMES)}")
        if not self.stages:
            last = self.stop_after or STAGE_NAMES[-1]
            raise UsageError(f"no stage is left to run: --start-after={self.start_after} is behind {last} or the same")
        if self.vector_bits not in VECTOR_BITS:
            raise UsageError(f"vectors of {self.vector_bits} bits; {', '.join(map(str, VECTOR_BITS[1:]))} are known")
        for feature in self.attrs:
            if feature[:1] not in ("+", "-") or len(feature) < 2:
                raise UsageError(f"feature '{feature}' needs a '+' to be switched on or a '-' to be switched off")

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages to run."""
        first = 0 if self.start_after is None else STAGE_NAMES.index(self.start_after) + 1
        last = len(STAGE_NAMES) if self.stop_after is None else STAGE_NAMES.index(self.stop_after) + 1
        return STAGE_NAMES[first:last]


_DEFAULT: Final = Options()


def lower(module: Module, target: Target | str = "native", *, options: Options = _DEFAULT) -> Module:
    """Lower a module in place.

    Args:
        module: The module; it is changed.
        target: The machine to aim at, or its name.
        options: How to lower.

    Returns:
        The lowered module (another one where a front end made it anew).

    Raises:
        ParseError, VerifyError: The input is no valid IR, or breaks a rule of the tensor intrinsics.
        LoweringError: A function cannot be lowered.
        UsageError: There is no such target.
    """
    from tlx.ir.parts import repeated
    from tlx.ir.reader import parse

    context = _context(target, options, options.triple or triple_of(module.source.text))
    source = module.source
    has_parts = any(repeated(function) for function in module.functions)
    try:
        with without_collection():
            lowered = _run_steps(module, context, options)
    except Exception as error:
        if has_parts or (options.verify_each is False and _blames_tlx(error)):
            verify(raised(parse(source.text, source.name)))
        if options.start_after is not None and _blames_tlx(error):
            message = f"this is not what {options.start_after} leaves, behind which the lowering was to start"
            raise LoweringError(f"{message}; without --start-after all stages run", name=source.name) from error
        raise
    if options.stop_after != "to-2d":
        _remark_unused(options)
    return lowered


def _run_steps(module: Module, context: Context, options: Options) -> Module:
    if options.verify_each is not False:
        _verify_for_front_ends(module)
    for step in steps():
        if step.name in STAGE_NAMES and step.name not in options.stages:
            continue
        module = step.run(module, context)
        if options.verify_each is not False and step.name not in ("raise", "verify"):
            _verify_step(module, step, options)
        if options.print_after:
            options.print_after(step, module)
    if options.stop_after in (None, STAGE_NAMES[-1]):
        _refuse_leftovers(module)
    return module


def _blames_tlx(error: Exception) -> bool:
    """Whether an error is TLX's own: unless LLVM, which was not asked before, rejects the input, which explains it."""
    return not isinstance(error, TlxError) or "bug of TLX" in error.message


def lower_text(
    text: str, filename: str = "<string>", target: Target | str = "native", *, options: Options = _DEFAULT
) -> str:
    """Lower LLVM assembly; what there is nothing to do for (`has_work`) comes back as it is, judged where it is small.

    Raises:
        TlxError: See `lower`.
    """
    if options.print_after is None and not has_work(text):
        if target != "native":
            named = options.attrs or options.cpu or added_features(target)  # else it may be of any architecture
            asked_target(target, options, (options.triple or triple_of(text)) if named else "")
        _judge_untouched(text, filename, options)
        return text
    from tlx.ir.reader import needs_lowering, parse

    def wanted(function: str) -> bool:
        """Of what a stage left, what calls kernels as well."""
        return needs_lowering(function) or (options.start_after is not None and "tlx." in function)

    shares = not any(_concerns(raiser, text) for raiser in raisers())  # a front end wants to see all that there is
    module = parse(text, filename, wanted, twins=shares, parts=shares and options.start_after is None)
    _remark_equals(module, options.remarks)
    return str(lower(module, target, options=options))


def has_work(text: str) -> bool:
    """Whether a text has tensor operations, or what front ends turn into them, large vectors, or asks for features."""
    if any(word in text for word in ("llvm.tensor.", "llvm.vector.totensor", TARGET_FEATURES)):
        return True
    if any(_concerns(raiser, text) for raiser in raisers()):
        return True
    return has_large_vectors(text)


def steps() -> list[Step]:
    """The steps, in order."""
    from tlx.lower import STAGES

    return [
        Step("raise", "RaiseFrontEnds", _raise),
        Step("verify", "VerifyTensors", _verify_tensors),
        Step("canonicalise", "CanonicaliseTensors", _canonicalise),
        *(Step(stage.name, stage.title, _in_place(stage.run)) for stage in STAGES),
    ]


def raised(module: Module) -> Module:
    """The module with the calls of front ends' placeholder functions turned into tensor operations.

    Raises:
        ParseError, VerifyError: The module is not valid, or uses a front end's functions in a way without meaning.
    """
    _verify_for_front_ends(module)
    return _raised(module)


def _verify_for_front_ends(module: Module) -> None:
    """Check what front ends are going to change: they rely on rules of LLVM, such as one definition of a name."""
    if any(_concerns(raiser, module.source.text) for raiser in raisers()):
        from tlx.ir.reader import parse

        verify(parse(str(module), module.source.name))


def _raised(module: Module) -> Module:
    for raiser in raisers():
        if _concerns(raiser, module.source.text):
            module = cast("Module | None", raiser.RAISE(module)) or module
    return module


def verify(module: Module) -> None:
    """Check a module as the lowering checks its input: the rules of the tensor intrinsics, then LLVM's.

    Tensor calls are made canonical in place on the way, since LLVM knows no overloads of one name.

    Raises:
        ParseError, VerifyError: The module is not valid.
    """
    from tlx.ir.canonical import canonicalise
    from tlx.ir.verifier import verify_tensors
    from tlx.judge import check_module

    verify_tensors(module)
    canonicalise(module)
    check_module(module)


@cache
def raisers() -> tuple[ModuleType, ...]:
    """The front ends that raise: modules of `tlx.frontends` with a function `RAISE`.

    `RAISE` takes a module and returns the raised one, or None where it has nothing to do. `MARKERS` names the
    substrings that a text holds if it concerns the front end; without it, every text does.
    """
    return tuple(module for module in front_ends() if hasattr(module, "RAISE"))


@cache
def front_ends() -> tuple[ModuleType, ...]:
    """All front ends: the modules of `tlx.frontends`.

    One that reads a language of its own has `TRANSLATE`, which takes a text, its name, what runs threads, and a version
    of the language, and returns LLVM assembly, or a module whose `str` is that; `LANGUAGE` and `TITLE`, what options
    and messages call the language; `STANDARDS`, its versions, the default last; `SUFFIXES`, how names of files end;
    and `OPENINGS`, words that a text begins with.
    """
    package = importlib.import_module(FRONT_ENDS)
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{FRONT_ENDS}.{name}") for name in names)


def _concerns(raiser: ModuleType, text: str) -> bool:
    markers = cast("Iterable[str] | None", getattr(raiser, "MARKERS", None))
    return markers is None or any(marker in text for marker in markers)


def _context(target: Target | str, options: Options, triple: str = "") -> Context:
    from tlx.lower.stage import Context

    follow = not options.cpu and not options.attrs
    found = asked_target(target, options, triple)
    return Context(
        found,
        options.remarks,
        follow,
        options.amx_permission,
        options.emulate_matrix,
        options.knobs,
        options.threads,
        options.thread_cycles,
        options.weight_bytes,
    )


def _judge_untouched(text: str, filename: str, options: Options) -> None:
    """Have LLVM judge text that comes back as it is, except where only its size would cost something."""
    if options.verify_each or (options.verify_each is None and len(text) <= UNJUDGED_SIZE):
        from tlx.judge import check

        check(text, filename)
    elif options.verify_each is None:
        size = f"{len(text) / 1e6:.1f} MB"
        message = f"{size} without tensor operations passed on unjudged; --verify-each has LLVM judge it"
        first_line = Source(filename, text[: text.find("\n") + 1] or text)
        options.remarks.add("analysis", "verify", message, first_line.span(0))


def _remark_equals(module: Module, remarks: Remarks) -> None:
    from tlx.ir.module import Function, Twin
    from tlx.ir.parts import repeated

    for item in module.items:
        if isinstance(item, Twin):
            message = f"@{item.name} is @{item.of.name} under another name: what is said of that one holds for both"
            remarks.add("analysis", "read", message, item.span)
        known = repeated(item)
        if isinstance(item, Function) and known is not None and known.more:
            message = f"{known.more} more parts equal to this one are lowered as it is, as calls of @{item.name}"
            remarks.add("analysis", "read", message, item.span)


def _remark_unused(options: Options) -> None:
    """Say which knobs no product took."""
    if isinstance(options.knobs, Tracked):
        for message, span in options.knobs.unused():
            options.remarks.add("analysis", "to-tiles", message, span)


def _raise(module: Module, _context: Context) -> Module:
    return _raised(module)


def _verify_tensors(module: Module, _context: Context) -> Module:
    from tlx.ir.verifier import verify_tensors

    verify_tensors(module)
    return module


def _canonicalise(module: Module, _context: Context) -> Module:
    from tlx.ir.canonical import canonicalise

    canonicalise(module)
    return module


def _in_place(run: Callable[[Module, Context], None]) -> Callable[[Module, Context], Module]:
    def step(module: Module, context: Context) -> Module:
        run(module, context)
        return module

    return step


def _verify_step(module: Module, step: Step, options: Options) -> None:
    """Have LLVM judge what a step left; the rules of tensors are checked by the next stage, if there is one."""
    from tlx.ir.verifier import verify_tensors
    from tlx.judge import check_module

    if step.name == "canonicalise":
        check_module(module)
        return
    if options.verify_each or step.name == options.stop_after:
        verify_tensors(module)
    check_module(module, step.name)


def _refuse_leftovers(module: Module) -> None:
    """No tensor operation may reach LLVM's code generator: it would crash."""
    for function in module.functions:
        for instruction in function.instructions():
            callee = instruction.callee or ""
            if callee.strip('"').startswith(("llvm.tensor.", "llvm.vector.totensor")):
                message = f"@{callee} is left after lowering; this is a bug of TLX: please report it with the input"
                raise LoweringError(message, instruction.span or function.span, name=module.source.name)
