"""The options of the lowering, declared once: command lines, `tlx.compile` and the stages use these declarations.

A field of `Options` that has a `Setting` is also an option on command lines; the setting holds its flag, its help, and
the values that it takes. `tlx.cli.options` makes click's options of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tlx.diagnostics import UsageError, did_you_mean
from tlx.llvm.openmp import THREAD_CYCLES, THREADS, Threads
from tlx.lower.knobs import WEIGHT_BYTES, KnobSource, no_knobs
from tlx.lower.remarks import Remarks

if TYPE_CHECKING:
    from tlx.ir.module import Module

STAGE_NAMES: Final = ("to-2d", "to-tiles", "legalize")
VECTOR_BITS: Final = (128, 256, 512)

Workspace = Literal["malloc", "arena", "argument"]
"""Who allocates temporaries: malloc in each call, an arena that each thread keeps, or the caller."""
WORKSPACES: Final[tuple[Workspace, ...]] = ("malloc", "arena", "argument")
Intermediates = Literal["exact", "float"]
"""Whether intermediate results of bfloat expressions are rounded to bfloat, or kept in float."""
INTERMEDIATES: Final[tuple[Intermediates, ...]] = ("exact", "float")
FloatProducts = Literal["exact", "tf32"]
"""Whether products of floats may ignore the last 13 bits of their operands."""
Fp8Products = Literal["exact", "tensor-cores"]
"""Whether the sums of products of 8-bit floats may have fewer bits than floats have."""
FLOAT_PRODUCTS: Final[tuple[FloatProducts, ...]] = ("exact", "tf32")
FP8_PRODUCTS: Final[tuple[Fp8Products, ...]] = ("exact", "tensor-cores")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline; `Options.print_after` is called with it.

    Attributes:
        name: Its name in `--stop-after=` and `--print-after=`.
        title: Its name in messages and in the banner of `--print-after`.
    """

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Setting:
    """The spelling of an option on command lines, and the values that it takes.

    Attributes:
        flag: Its spelling, such as `--threads`; `--x/--no-x` for a switch that can be turned off.
        type: The type of its values: `str`, `int`, `bool`, or `tuple` for words between commas, in one or more options.
        help: The line in `--help`.
        metavar: The name of a value in `--help`; by default its choices.
        choices: The values, if there are few; the default is valid besides them.
        minimum: The least value of a number.
    """

    flag: str
    type: type
    help: str
    metavar: str | None = None
    choices: tuple[Any, ...] = ()
    minimum: int | None = None

    def mistake(self, value: object) -> str | None:
        """What is wrong with a value, in the words of the commands; None if it is valid."""
        if not isinstance(value, self.type) or (self.type is int and isinstance(value, bool)):
            return f"{value!r} is not of type {self.type.__name__}"
        if self.choices and value not in self.choices:
            choices = ", ".join(f"'{choice}'" for choice in self.choices)
            return f"'{value}' is not one of {choices}{did_you_mean(str(value), map(str, self.choices))}"
        if self.minimum is not None and cast("int", value) < self.minimum:
            return f"{value} is less than {self.minimum}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to lower.

    Raises:
        UsageError: An option does not take its value, or no stage is left to run.
    """

    cpu: str = field(
        default="",
        metadata={"setting": Setting("--mcpu", str, "Processor to generate code for, by LLVM's name.", metavar="CPU")},
    )
    features: tuple[str, ...] = field(
        default=(),
        metadata={
            "setting": Setting("--mattr", tuple, "Features to add to the target's, or to remove.", metavar="+A,-B")
        },
    )
    vector_bits: int = field(
        default=0,
        metadata={
            "setting": Setting(
                "--vector-bits",
                int,
                "Width of vector registers, where the target leaves it open, as generic does.",
                choices=VECTOR_BITS,
            )
        },
    )
    triple: str = field(
        default="",
        metadata={"setting": Setting("--mtriple", str, "Target triple, in place of the module's.", metavar="TRIPLE")},
    )
    start_after: str | None = field(
        default=None,
        metadata={
            "setting": Setting(
                "--start-after",
                str,
                "Continue after STAGE, from the output of --stop-after=STAGE.",
                metavar="STAGE",
                choices=STAGE_NAMES[:-1],
            )
        },
    )
    stop_after: str | None = field(
        default=None,
        metadata={"setting": Setting("--stop-after", str, "Stop after STAGE.", metavar="STAGE", choices=STAGE_NAMES)},
    )
    print_after: Callable[[Step, Module], None] | None = None
    """Called with each step and the module that it leaves."""
    verify_each: bool | None = field(
        default=None,
        metadata={
            "setting": Setting(
                "--verify-each/--no-verify-each",
                bool,
                "Verify the input and the output of every stage with LLVM (default: except large inputs without tensor "
                "operations).",
            )
        },
    )
    knobs: KnobSource = no_knobs
    """Returns the knobs of each product, which override the cost model's choice; see `tlx.lower.knobs`."""
    request_permission: bool = field(
        default=True,
        metadata={
            "setting": Setting(
                "--request-permission/--no-request-permission",
                bool,
                "Emit a constructor that requests the matrix unit from the operating system.",
            )
        },
    )
    emulate_matrix: bool = field(
        default=False,
        metadata={
            "setting": Setting(
                "--emulate-matrix",
                bool,
                "Emulate the matrix unit, so that the code runs (slowly) on machines without it.",
            )
        },
    )
    threads: Threads = field(
        default="none",
        metadata={
            "setting": Setting("--threads", str, "Library that runs large kernels on several threads.", choices=THREADS)
        },
    )
    thread_cycles: int = field(
        default=THREAD_CYCLES,
        metadata={
            "setting": Setting(
                "--thread-cycles",
                int,
                f"Minimum work of a thread, in cycles (default: {THREAD_CYCLES}).",
                metavar="N",
                minimum=0,
            )
        },
    )
    weight_bytes: int = field(
        default=WEIGHT_BYTES,
        metadata={
            "setting": Setting(
                "--weight-bytes",
                int,
                f"Pack constant B operands of up to N bytes at compile time (default: {WEIGHT_BYTES}).",
                metavar="N",
                minimum=0,
            )
        },
    )
    workspace: Workspace = field(
        default="malloc",
        metadata={
            "setting": Setting(
                "--workspace",
                str,
                "Where temporaries live: malloc'd in each call, in an arena that each thread keeps, or in memory of "
                "the caller.",
                choices=WORKSPACES,
            )
        },
    )
    bf16_intermediates: Intermediates = field(
        default="exact",
        metadata={
            "setting": Setting(
                "--bf16-intermediates",
                str,
                "Round each operation of fused bfloat expressions, or compute them in float and round the result.",
                choices=INTERMEDIATES,
            )
        },
    )
    float_products: FloatProducts = field(
        default="exact",
        metadata={
            "setting": Setting(
                "--float-products",
                str,
                "Multiply floats as they are, or without their last 13 bits (TF32) where the target has units for it.",
                choices=FLOAT_PRODUCTS,
            )
        },
    )
    fp8_products: Fp8Products = field(
        default="exact",
        metadata={
            "setting": Setting(
                "--fp8-products",
                str,
                "Convert 8-bit floats before they are multiplied, or multiply them by tensor cores, whose sums have "
                "fewer bits.",
                choices=FP8_PRODUCTS,
            )
        },
    )
    decision_seed: int | None = None
    """A seed that decides among correct alternatives in place of the cost model; for tests, not on command lines."""
    remarks: Remarks = field(default_factory=Remarks)
    """Collects the decisions, with reasons."""

    def __post_init__(self) -> None:
        for name, (setting, default) in SETTINGS.items():
            value = getattr(self, name)
            mistake = None if value == default else setting.mistake(value)
            if mistake is not None:
                raise UsageError(f"invalid value for '{name}': {mistake}")
        if not callable(self.knobs):
            expected = "a function from a KnobQuery to Knobs, such as FixedKnobs(parse_knobs('kc=512'))"
            raise UsageError(f"invalid value for 'knobs': expected {expected}, got {self.knobs!r}")
        if not self.stages:
            last = self.stop_after or STAGE_NAMES[-1]
            raise UsageError(f"no stage is left to run: --start-after={self.start_after} with --stop-after={last}")
        for feature in self.features:
            if feature[:1] not in ("+", "-") or len(feature) < 2:
                raise UsageError(f"feature '{feature}' needs a '+' to be switched on or a '-' to be switched off")

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages to run."""
        first = 0 if self.start_after is None else STAGE_NAMES.index(self.start_after) + 1
        last = len(STAGE_NAMES) if self.stop_after is None else STAGE_NAMES.index(self.stop_after) + 1
        return STAGE_NAMES[first:last]

    def updated(self, **changes: Any) -> Options:
        """The options with some of them changed, by their names.

        Raises:
            UsageError: There is no such option, or it does not take that value.
        """
        names = [f.name for f in fields(Options)]
        for name in changes:
            if name not in names:
                raise UsageError(f"unknown option '{name}'{did_you_mean(name, names)}")
        return replace(self, **changes)


SETTINGS: Final[Mapping[str, tuple[Setting, Any]]] = {
    f.name: (f.metadata["setting"], f.default) for f in fields(Options) if "setting" in f.metadata
}
"""Setting and default of each option that command lines have, in the order of `--help`."""
