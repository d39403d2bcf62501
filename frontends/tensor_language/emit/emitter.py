"""The emitter: the values that names are bound to, the state while a kernel is written, and the walk over its regions.

Each instruction of the language has a rule, a public function `(Emitter, instruction) -> None` of a module of this
package: a new instruction is one class and one rule.

A number is *uniform* (one LLVM scalar) or *varying* (an LLVM vector with one lane for each work-item of a subgroup). In
registers, `bf16` and `f16` are floats that hold a value of the narrow type: arithmetic is done in f32. A complex number
is two such values, its parts.

    register             memory                 tensor element
    bool   i1            -                      i1
    i8...i64, index      the same               the same
    bf16   float         i16 (the upper half)   bfloat
    f16    float         half                   half
    f32    float         float                  float
    f64    double        double                 double
    c32    2 x float     2 x float, adjacent    -
    c64    2 x double    2 x double, adjacent   -

Integer intervals tell whether sums and products such as `subgroup_linear_id * subgroup_size + subgroup_local_id` can
wrap around; if they cannot, they grow by the same step from lane to lane in a wider type, too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tlx.diagnostics import LoweringError
from tlx.frontends.tensor_language.analysis.first_writes import FirstWrites
from tlx.frontends.tensor_language.analysis.uses import MatrixUses
from tlx.frontends.tensor_language.operations.control import Yield
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.types import BF16, CoopMatrixType, GroupType, MemrefType, ScalarType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I16, FloatType, IntType, VectorType
from tlx.ir.values import ConstInt, Value

if TYPE_CHECKING:
    from tlx.target.grid_unit import FragmentProduct


def register_type(type_: ScalarType) -> IntType | FloatType:
    """LLVM type in which one part of a scalar is held and computed with."""
    if type_.kind in ("bool", "int"):
        return IntType(type_.bits)
    return DOUBLE if type_.part.bits == 64 else FLOAT


def memory_type(type_: ScalarType) -> IntType | FloatType:
    """LLVM type with which one part of a scalar is loaded and stored."""
    if type_.is_narrow_float:
        return I16 if type_ == BF16 else HALF
    return register_type(type_)


def tensor_element(type_: ScalarType) -> IntType | FloatType:
    """Element type of tensors of a scalar type; for a complex type, the type of its parts."""
    if type_.is_narrow_float:
        return BFLOAT if type_ == BF16 else HALF
    return register_type(type_)


@dataclass(frozen=True, slots=True)
class LinearLanes:
    """Lane `i` holds `base + i * step`.

    Attributes:
        base: A uniform integer.
        step: Known distance from lane to lane.
        exact: Whether this holds without wrapping; otherwise it holds modulo 2^bits.
    """

    base: Value
    step: int
    exact: bool = False


Parts = tuple[Value, ...]  # one LLVM value, or the real and the imaginary part
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar.

    Attributes:
        type: Its type.
        parts: One LLVM value; the real and the imaginary one of a complex number.
        linear: The linear form of a varying integer, if it has one.
        interval: Bounds of an integer in any lane, if they are known.
    """

    type: ScalarType
    parts: Parts
    linear: LinearLanes | None = None
    interval: Interval | None = None

    @property
    def value(self) -> Value:
        """The only part."""
        (value,) = self.parts
        return value

    @property
    def is_varying(self) -> bool:
        """Whether it is a vector."""
        return isinstance(self.parts[0].type, VectorType)


@dataclass(frozen=True, slots=True)
class Memref:
    """A memref. Components that vary (such as the pointer of a view at a varying offset) are vectors.

    Attributes:
        type: Its type; a static extent is also the constant in `shape` or `stride`.
        pointer: Address of its first element: `ptr`, or a vector of `ptr`.
        shape: Extent of each mode, i64.
        stride: Stride of each mode in elements, i64.
        alignment: Known alignment of the pointer in bytes, at least that of an element.
    """

    type: MemrefType
    pointer: Value
    shape: tuple[Value, ...]
    stride: tuple[Value, ...]
    alignment: int

    @property
    def is_varying(self) -> bool:
        """Whether work-items see different memrefs."""
        return any(isinstance(v.type, VectorType) for v in (self.pointer, *self.shape, *self.stride))


@dataclass(frozen=True, slots=True)
class Group:
    """A group of memrefs.

    Attributes:
        type: Its type.
        pointer: Address of the first member's pointer.
        shapes: For each mode, the address of the members' extents (i64), None where the extent is static.
        strides: The same for the strides.
        size: Number of members, i64; None in version 1 of the language, which does not pass it.
        offset: Elements added to each pointer, i64.
        alignment: Known alignment of the members' pointers in bytes.
    """

    type: GroupType
    pointer: Value
    shapes: tuple[Value | None, ...]
    strides: tuple[Value | None, ...]
    size: Value | None
    offset: Value
    alignment: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """A cooperative matrix: for each part one uniform, flattened vector, column by column.

    Attributes:
        type: Its type.
        parts: `<rows * columns x T>` of the tensor element type; two of them for complex components.
    """

    type: CoopMatrixType
    parts: Parts

    @property
    def value(self) -> Value:
        """The only part."""
        (value,) = self.parts
        return value


Emitted = Number | Memref | Group | Matrix


def interval_of(number: Number) -> Interval | None:
    """The interval of a number."""
    if number.interval is not None:
        return number.interval
    if number.is_varying or not isinstance(number.parts[0], ConstInt):
        return None
    return number.parts[0].value, number.parts[0].value


def binary_interval(op: str, type_: ScalarType, lhs: Number, rhs: Number) -> Interval | None:
    """The interval of `lhs op rhs`."""
    a, b = interval_of(lhs), interval_of(rhs)
    if type_.kind != "int" or a is None or b is None:
        return None
    match op:
        case "add":
            return clamped_interval(type_, (a[0] + b[0], a[1] + b[1]))
        case "sub":
            return clamped_interval(type_, (a[0] - b[1], a[1] - b[0]))
        case "mul":
            corners = [x * y for x in a for y in b]
            return clamped_interval(type_, (min(corners), max(corners)))
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def loop_interval(start: Number, stop: Number) -> Interval | None:
    """The interval of a loop variable, in the work-items that run an iteration."""
    a, b = interval_of(start), interval_of(stop)
    return None if a is None or b is None else (a[0], max(a[0], b[1] - 1))


def clamped_interval(type_: ScalarType, interval: Interval | None) -> Interval | None:
    """An interval if it fits a type; nothing is known of numbers that may wrap around."""
    limit = 1 << (type_.bits - 1)
    return interval if interval is not None and -limit <= interval[0] and interval[1] < limit else None


Rule = Callable[["Emitter", Any], None]


@dataclass(frozen=True, slots=True)
class WorkGroup:
    """The work-group that is emitted.

    Attributes:
        group_id: i64 for x, y and z.
        num_groups: i64 for x, y and z.
        subgroup_size: Work-items of a subgroup, which is the number of lanes of varying values: a power of two.
        work_group_size: Work-items along the two modes; the first is a multiple of the subgroup size.
    """

    group_id: tuple[Value, ...]
    num_groups: tuple[Value, ...]
    subgroup_size: int
    work_group_size: tuple[int, int]

    @property
    def num_subgroups(self) -> tuple[int, int, int]:
        """Subgroups along x, y and z."""
        rows, columns = self.work_group_size
        return rows // self.subgroup_size, columns, 1


@dataclass(eq=False)
class SharedMemory:
    """The memory that the threads of a work-group share, while it is being divided.

    It begins with memory for the results of `threads.once`. Each subgroup has scratch memory at its end.

    Attributes:
        base: Its address.
        scratch: The address of the subgroup's scratch memory.
        used: Bytes in use.
        most: Most bytes that were ever in use.
        most_scratch: Bytes of a subgroup's scratch memory.
    """

    base: Value
    scratch: Value
    used: int = 64
    most: int = 64
    most_scratch: int = 0

    def allocate(self, size: int, alignment: int) -> int:
        """The offset of some bytes that are in use from then on."""
        offset = -(-self.used // alignment) * alignment
        self.used = offset + size
        self.most = max(self.most, self.used)
        return offset


@dataclass(frozen=True, slots=True)
class WorkItem:
    """The work-item that a thread of a grid runs.

    Attributes:
        number: Its number in the work-group, i32.
        lane: Its number in the subgroup, i32.
        subgroup: The linear number of its subgroup, i32.
        shared: The work-group's memory.
        products: The products of fragments that the grid has for subgroups of this size.
        uses: How the kernel uses matrices.
    """

    number: Value
    lane: Value
    subgroup: Value
    shared: SharedMemory
    products: tuple[FragmentProduct, ...]
    uses: MatrixUses


@dataclass(eq=False)
class Emitter:
    """Writes one kernel's work-group function.

    Attributes:
        b: The IR builder.
        source: The kernel.
        launch: Ids and sizes of the work-group.
        varying: Ids of the defining `Name`s that may differ between the work-items of a subgroup.
        rules: Rule of each class of instruction.
        first_writes: Outputs that BLAS instructions need not read, and allocations that are zeroed.
        scope: The value of each visible name.
        mask: `<S x i1>`, the work-items that run the current region; None for all of them.
        subgroup: In an SPMD region the linear subgroup id, i32; None in a collective region.
        at_region_end: Emit code at the end of the current region, such as freeing memory.
        item: On a grid, the work-item that the code is for; varying values have one lane, its own. None where a thread
            runs the whole work-group.
    """

    b: TensorBuilder
    source: Function
    launch: WorkGroup
    varying: frozenset[int]
    rules: Mapping[type[Instruction], Rule]
    first_writes: FirstWrites
    scope: dict[str, Emitted] = field(default_factory=dict[str, Emitted])
    mask: Value | None = None
    subgroup: Value | None = None
    at_region_end: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    item: WorkItem | None = None

    @property
    def lanes(self) -> int:
        """Lanes of varying values: the work-items of a subgroup, or one on a grid."""
        return self.launch.subgroup_size if self.item is None else 1

    # Names -----------------------------------------------------------------------------------------------------

    def bind(self, name: Name, value: Emitted) -> None:
        """Bind a name to a value."""
        self.scope[name.text] = value

    def number(self, name: Name) -> Number:
        """The scalar that a name is bound to."""
        value = self.scope[name.text]
        assert isinstance(value, Number), f"{name} is not a scalar"
        return value

    def numbers(self, names: tuple[Name, ...]) -> tuple[Number, ...]:
        """The scalars that names are bound to."""
        return tuple(self.number(name) for name in names)

    def memref(self, name: Name) -> Memref:
        """The memref that a name is bound to."""
        value = self.scope[name.text]
        assert isinstance(value, Memref), f"{name} is not a memref"
        return value

    def group(self, name: Name) -> Group:
        """The group that a name is bound to."""
        value = self.scope[name.text]
        assert isinstance(value, Group), f"{name} is not a group"
        return value

    def matrix(self, name: Name) -> Matrix:
        """The cooperative matrix that a name is bound to."""
        value = self.scope[name.text]
        assert isinstance(value, Matrix), f"{name} is not a cooperative matrix"
        return value

    def is_varying(self, name: Name) -> bool:
        """Whether the value bound by this (defining) name may differ between work-items."""
        return id(name) in self.varying

    # Regions ---------------------------------------------------------------------------------------------------

    def run(self, region: Region) -> tuple[Emitted, ...]:
        """Emit a region; returns the values that it yields. Its names go out of scope."""
        with self.region():
            return self.instructions(region.instructions)

    def instructions(self, instructions: list[Instruction]) -> tuple[Emitted, ...]:
        """Emit instructions in the current region; returns the values that the last one yields."""
        for instruction in instructions:
            if isinstance(instruction, Yield):
                return tuple(self.scope[name.text] for name in instruction.values)
            self.instruction(instruction)
        return ()

    def instruction(self, instruction: Instruction) -> None:
        """Write one instruction.

        Raises:
            LoweringError: There is no rule for it.
        """
        rule = self.rules.get(type(instruction))
        if rule is None:
            message = f"{type(instruction).__name__} has no rule; this is a bug in TLX"
            raise LoweringError(message, instruction.span)
        hint, self.b.span = self.b.hint, instruction.span
        if instruction.results:
            self.b.hint = instruction.results[0].text
        rule(self, instruction)
        self.b.hint = hint

    @contextmanager
    def region(self) -> Generator[None]:
        """A region: names bound in it go out of scope at its end, and memory allocated in it is freed."""
        scope, ends = dict(self.scope), self.at_region_end
        self.at_region_end = []
        yield
        for end in reversed(self.at_region_end):
            end()
        self.scope, self.at_region_end = scope, ends

    @contextmanager
    def masked(self, mask: Value | None) -> Generator[None]:
        """Code emitted inside runs under a mask."""
        before, self.mask = self.mask, mask
        yield
        self.mask = before
