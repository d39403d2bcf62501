"""Functions that are graphs of arbitrary operations: each statement adds a value.

%v1 = load <12 x float>, ptr %b0                       a leaf: plain loads, tensor loads, constants, scalars
%v2 = call <12 x float> @llvm.tensor.relu(token %t1)   an operation on earlier values, or on new leaves
%v3 = fadd <12 x float> %v2, %v1
...                                                    finally, all unused values are stored

Facts about a value that hold in every run determine which operations may use it, so that every program has one meaning:

- sums of floats need integers small enough to be added in any order without rounding;
- a value that is accurate only to some units in the last place is moved, multiplied and stored, but not compared;
- conversions to integers need numbers that fit, `nsw` needs sums that do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.fuzz.generation.forms import RunTimeForms
from tlx.fuzz.generation.model import LARGEST_EXACT, ArrayParameter, BufferAddress, Choices, InitialContents
from tlx.fuzz.generation.profiles import Profile
from tlx.fuzz.generation.writer import TokenValue, Vector, dims_operand
from tlx.intrinsics.numpy_types import dtype_of
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, FloatType, IntType, Type

if TYPE_CHECKING:
    from tlx.fuzz.generation.model import RandomFunction

_MOST_ULPS: Final = 64


@dataclass(frozen=True)
class ValueFacts:
    """What is known about the elements of a vector.

    Attributes:
        low: Lower bound of the elements (integers: signed; floats: if `integral`).
        high: Upper bound of the elements.
        integral: Floats: all are integers in that range, without infinities and NaNs.
        ulps: Floats: units in the last place by which correct results may differ.
        zeros: Floats: whether the signs of zeros are determined.
        moderate: Floats: neither tiny nor huge, so that relative errors stay small in products.
    """

    low: int = 0
    high: int = 0
    integral: bool = False
    ulps: float = 0.0
    zeros: bool = True
    moderate: bool = False

    @property
    def bound(self) -> int:
        """Upper bound of the magnitudes."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_exact(self) -> bool:
        """Whether results must be equal."""
        return not self.ulps

    @property
    def is_moderate(self) -> bool:
        """Whether the elements are moderate, or small integers."""
        return self.moderate or (self.integral and self.bound <= 4096)

    def with_zero(self) -> ValueFacts:
        """The facts if some elements may be zero."""
        return replace(self, low=min(self.low, 0), high=max(self.high, 0))

    def joined(self, other: ValueFacts) -> ValueFacts:
        """The facts about a vector that takes each element from one of two."""
        return ValueFacts(
            min(self.low, other.low),
            max(self.high, other.high),
            self.integral and other.integral,
            max(self.ulps, other.ulps),
            self.zeros and other.zeros,
            self.moderate and other.moderate,
        )


def unknown_facts(type_: Type) -> ValueFacts:
    """The facts about a vector of any numbers."""
    if isinstance(type_, IntType):
        half = 1 << (type_.bits - 1)
        return ValueFacts(-half, half - 1)
    return ValueFacts()


def range_facts(type_: Type, low: int, high: int, *, zeros: bool = True) -> ValueFacts:
    """The facts about integers in a range; those about any number if the type cannot represent all of them."""
    if isinstance(type_, FloatType):
        if max(abs(low), abs(high)) > LARGEST_EXACT[type_]:
            return ValueFacts(zeros=zeros)
        return ValueFacts(low, high, integral=True, zeros=zeros)
    whole = unknown_facts(type_)
    return ValueFacts(low, high) if whole.low <= low and high <= whole.high else whole


def result_range(name: str, x: ValueFacts, y: ValueFacts) -> tuple[int, int]:
    """Least and largest result of `add`, `sub` or `mul`."""
    if name == "add":
        return x.low + y.low, x.high + y.high
    if name == "sub":
        return x.low - y.high, x.high - y.low
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)


@dataclass(frozen=True)
class KnownValue:
    """A flattened vector of the program and what is known about it."""

    vector: Vector
    facts: ValueFacts
    token: TokenValue | None = None

    @property
    def type(self) -> TensorType:
        """Its tensor type."""
        return self.vector.type

    @property
    def element(self) -> Type:
        """The type of its elements."""
        return self.vector.type.element

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return isinstance(self.element, FloatType)

    @property
    def is_mask(self) -> bool:
        """Whether its elements are i1."""
        return self.element == I1

    @property
    def is_loose(self) -> bool:
        """Whether no further rounding error is allowed."""
        return self.facts.ulps >= _MOST_ULPS


FLOATS: Final = (FLOAT, DOUBLE, HALF, BFLOAT)
INTEGERS: Final = (I32, I8, I16, I64)
ELEMENTS: Final = (FLOAT, I32, FLOAT, DOUBLE, I8, I16, I64, HALF, BFLOAT)
_BOUNDS: Final = (3, 1, 2, 8, 20)
NOT_ON_HANDLES: Final = frozenset(
    [
        *("pad", "convolution", "reshape.block", "splat", "call", "by-value", "bitcast"),
        *("shuffle", "reverse", "splice", "interleave", "deinterleave", "elements", "choice", "vector-reduce", "count"),
        *("insert", "insert-loop"),
    ]
)
"""Operations that tensors of sizes known only at run time do not have."""
_LONGEST_CONSTANT: Final = 48


class DataflowWriter(RunTimeForms):
    """Writes one function of any form.

    Args:
        profile: Profile of the program.
        choose: Source of random choices.
        name: Name of the function.
        typed: Whether pointers have types.
        suffixes: Whether intrinsics have mangled suffixes.
        callees: Functions that it may call.
        operations: Operations for the statements of `dataflow`, repeated by weight.

    Attributes:
        used: Names of the operations in it.
        declarations: Functions that it calls without defining them.
        is_in_loop: Whether the body of a loop is being written.
    """

    def __init__(
        self,
        profile: Profile,
        choose: Choices,
        name: str,
        *,
        typed: bool,
        suffixes: bool,
        callees: Sequence[RandomFunction],
        operations: Sequence[tuple[str, Operation]],
    ) -> None:
        super().__init__(profile, choose, name, typed=typed, suffixes=suffixes)
        self.callees = list(callees)
        self._all_operations = operations
        self.used: set[str] = set()
        self.declarations: set[str] = set()
        self._values: list[KnownValue] = []
        self._operands: set[str] = set()
        self.is_in_loop = False

    # Statements --------------------------------------------------------------------------------------------------

    def dataflow(self) -> None:
        """Operations on the results of earlier ones."""
        self.statements(2, 9)
        self._store_the_rest()

    def run_time_dataflow(self) -> None:
        """`dataflow` on tensors of sizes read from memory; of known sizes if pointers are typed."""
        self.is_run_time = not self.typed
        self.dataflow()

    def statements(self, least: int, most: int) -> None:
        """Write between `least` and `most` statements."""
        for part in self.random.parts(least, most):
            with self._drawing_from(part):
                self._statement()

    @contextmanager
    def _drawing_from(self, part: Choices) -> Generator[None]:
        before, self.random = self.random, part
        try:
            yield
        finally:
            self.random = before

    @property
    def _operations(self) -> Sequence[tuple[str, Operation]]:
        if not self.is_run_time:
            return self._all_operations
        return [(name, operation) for name, operation in self._all_operations if name not in NOT_ON_HANDLES]

    def _statement(self) -> None:
        name, operation = self.random.choice(self._operations)
        value = operation(self)
        if value is not None:
            self.used.add(name)
            self._values.append(value)

    def add(self, *values: KnownValue) -> None:
        """Make values available to the following statements."""
        self._values.extend(values)

    @contextmanager
    def body(self) -> Generator[None]:
        """A context that writes the body of a loop."""
        self.is_in_loop = True
        yield
        self.is_in_loop = False

    @contextmanager
    def scope(self) -> Generator[None]:
        """A context that writes a block whose values nothing after it uses; what it does not use either, it stores."""
        before = len(self._values)
        yield
        for value in self._values[before:]:
            if value.vector.name not in self._operands and value.facts.is_exact and self.chance(0.5):
                self.sink(value)
        del self._values[before:]

    def _store_the_rest(self) -> None:
        rest = [value for value in self._values if value.vector.name not in self._operands]
        for value in rest or self._values[-1:]:
            self.sink(value)

    def sink(self, value: KnownValue) -> None:
        """Store a value somewhere."""
        self._operands.add(value.vector.name)
        if value.is_mask and not self.is_run_time and self.chance(0.4):
            self._put_token(self.typeinfo(value.vector, self._stored_type(value.type)))
            return
        if value.is_mask:
            self.sink(self.instruction("zext {} to {}", [value], I8, ValueFacts(0, 1)))
            return
        first = len(self.buffers)
        self._put(value.vector)
        for buffer in self.buffers[first:]:
            buffer.ulps, buffer.zeros = value.facts.ulps, value.facts.zeros

    # Operands ----------------------------------------------------------------------------------------------------

    def operand(self, fits: Callable[[KnownValue], bool], make: Callable[[], KnownValue]) -> KnownValue:
        """A value that fits: an existing one, or a new leaf."""
        value = self.existing(fits) or make()
        self._operands.add(value.vector.name)
        return value

    def existing(self, fits: Callable[[KnownValue], bool]) -> KnownValue | None:
        """An existing value that fits; None if there is none, and sometimes at random."""
        fitting = [value for value in reversed(self._values) if fits(value)][:8]
        if not fitting or self.chance(0.25):
            return None
        value = self.random.choice(fitting)
        self._operands.add(value.vector.name)
        return value

    def number(self, elements: Sequence[Type] = ELEMENTS, *, integral: bool = False, exact: bool = True) -> KnownValue:
        """A value with one of these element types."""

        def fits(value: KnownValue) -> bool:
            if value.element not in elements or (value.is_float and integral and not value.facts.integral):
                return False
            return value.facts.is_exact if exact else not value.is_loose

        return self.operand(fits, lambda: self.leaf(self.random.choice(elements), integral=integral))

    def partner(self, of: KnownValue, *, integral: bool = False, exact: bool = True) -> KnownValue:
        """A second operand for an instruction, of the same vector type."""

        def fits(value: KnownValue) -> bool:
            if value.type.vector != of.type.vector or (value.is_float and integral and not value.facts.integral):
                return False
            return value.facts.is_exact if exact else not value.is_loose

        return self.operand(fits, lambda: self._new_partner(of, integral=integral))

    def _new_partner(self, of: KnownValue, *, integral: bool) -> KnownValue:
        if of.is_mask:
            return self._new_mask(of)
        kind = self.random.choice(["leaf", "constant", "leaf", "splat", "broadcast"])
        if kind == "constant":
            return self.constant(of.type)
        if kind == "splat":
            return self.splat(of.type)
        if kind == "broadcast" and of.type.is_row_major and not of.type.is_padded:
            return self._broadcast_leaf(of.type, integral=integral)
        return self.leaf_of(of.type, integral=integral)

    def number_like(self, mask: KnownValue) -> KnownValue:
        """A value with as many elements as a mask."""

        def make() -> KnownValue:
            of = mask.type
            return self.leaf_of(TensorType(self.random.choice(ELEMENTS), of.shape, of.layout, of.padding))

        return self.operand(lambda v: v.type.count == mask.type.count and not v.is_mask and not v.is_loose, make)

    def mask(self) -> KnownValue:
        """A vector of i1: an existing one, a tensor of i1 in memory, or a comparison."""

        def make() -> KnownValue:
            if not self.is_run_time and self.chance(0.3):
                return self.leaf(I1)
            x = self.number()
            form = "fcmp olt {}, {}" if x.is_float else "icmp slt {}, {}"
            return self.instruction(form, [x, self.partner(x)], I1, unknown_facts(I1))

        return self.operand(lambda v: v.is_mask, make)

    def condition(self) -> str:
        """A scalar i1 that depends on memory."""
        scalar, _ = self.scalar(I32)
        name = self.fresh("c")
        self.line(f"{name} = icmp sgt i32 {scalar}, 1")
        return name

    def _new_mask(self, of: KnownValue) -> KnownValue:
        """Another vector of i1 of the same type."""
        if self.chance(0.2):
            return self.constant(of.type)
        if not self.is_run_time and self.chance(0.3):
            return self.leaf_of(of.type)
        type_ = TensorType(I32, of.type.shape, of.type.layout, of.type.padding)
        return self.instruction("icmp slt {}, {}", [self.leaf_of(type_), self.constant(type_)], I1, unknown_facts(I1))

    # Leaves ------------------------------------------------------------------------------------------------------

    def extents(self) -> tuple[int, ...]:
        """Extents of a tensor within the profile's limit."""
        return self._some_extents(self.random.choice([2, 1, 2, 3, 2, 4]), self.profile.room // 2)

    def leaf(self, element: Type, *, integral: bool = False) -> KnownValue:
        """A new value of any shape."""
        return self.leaf_of(self.type_of(self.extents(), element), integral=integral)

    def leaf_of(self, type_: TensorType, *, integral: bool = False) -> KnownValue:
        """A new value of a type, from memory; i1 as a tensor, since vectors of i1 are packed in memory."""
        contents = self.contents(type_.element, integral=integral)
        facts = facts_from_memory(type_.element, contents)
        if type_.element != I1 and self.chance(0.5):
            place = self._dense_place(type_)
            place.buffer.contents = contents
            return KnownValue(self.load_vector(place, type_), facts)
        token = self.loaded(type_, contents)
        vector = self.tovector(token)
        return KnownValue(vector, facts.with_zero() if type_.is_padded else facts, token)

    def loaded(self, type_: TensorType, contents: InitialContents | None) -> TokenValue:
        """A token of a tensor in memory with random pitches."""
        pitches = self.pitches(type_, overlap=True)
        return self.load(self.filled_place(type_, pitches, contents), type_, pitches)

    def contents(self, element: Type, *, integral: bool = False, bound: int | None = None) -> InitialContents | None:
        """Random contents for a buffer; None for integers that may be any."""
        if not isinstance(element, FloatType):
            few = self.random.choice([(0, 1), (0, 100), (-7, 7)]) if element != I1 and self.chance(0.3) else None
            return few and InitialContents(*few)
        if bound is None and not integral and self.chance(0.4):
            return InitialContents(wild=True)
        magnitude = bound or self.random.choice(_BOUNDS)
        return InitialContents(0 if self.chance(0.2) else -magnitude, magnitude)

    def filled_place(
        self, type_: TensorType, pitches: Sequence[int], contents: InitialContents | None
    ) -> BufferAddress:
        """An address for a tensor in a new array that holds `contents`."""
        place = self.place(type_, pitches)
        place.buffer.contents = contents
        return place

    def constant(self, type_: TensorType) -> KnownValue:
        """A constant: all zeros, or small numbers if it is short enough to be written out."""
        element = type_.element
        if self.is_run_time:
            return self.splat(type_)
        if type_.count > _LONGEST_CONSTANT or self.chance(0.15):
            return KnownValue(Vector("zeroinitializer", type_), range_facts(element, 0, 0))
        low = 0 if element == I1 else -3
        numbers = [self.random.randint(low, 1 if element == I1 else 5) for _ in range(min(type_.count, 4))]
        spread = [numbers[at % len(numbers)] for at in range(type_.count)]
        text = ", ".join(f"{element} {constant_literal(element, number)}" for number in spread)
        return KnownValue(Vector(f"<{text}>", type_), range_facts(element, min(numbers), max(numbers)))

    def splat(self, type_: TensorType) -> KnownValue:
        """A scalar in every element."""
        scalar, facts = self.scalar(type_.element)
        return KnownValue(self.splat_scalar(type_, scalar), facts)

    def splat_scalar(self, type_: TensorType, scalar: str) -> Vector:
        """A named or constant scalar in every element."""
        vector, start = self.vector_type(type_), self.fresh("i")
        index = self.random.choice(["i32", "i64"])
        self.line(f"{start} = insertelement {vector} undef, {type_.element} {scalar}, {index} 0")
        mask = f"{self.vector_type(replace(type_, element=I32))} zeroinitializer"
        return self.let(f"shufflevector {vector} {start}, {vector} undef, {mask}", type_)

    def scalar(self, element: Type) -> tuple[str, ValueFacts]:
        """A scalar operand without its type: a constant, or one from memory."""
        if self.chance(0.5):
            number = self.random.randint(-2, 6)
            return constant_literal(element, number), range_facts(element, number, number)
        contents = self.contents(element, integral=True)
        return self._scalar_in_memory(element, contents), facts_from_memory(element, contents)

    def number_in_memory(self, element: Type, number: int) -> str:
        """A scalar read from memory that has this value."""
        return self._scalar_in_memory(element, InitialContents(number, number))

    def _scalar_in_memory(self, element: Type, contents: InitialContents | None) -> str:
        buffer = self.buffer(element, 1, contents)
        buffer.data[:] = True
        name = self.fresh("s")
        self.line(f"{name} = load {element}, {self._pointer_type(element)} %{buffer.name}, {self._align(element)}")
        return name

    def _broadcast_leaf(self, type_: TensorType, *, integral: bool) -> KnownValue:
        """A broadcast of a tensor with fewer dimensions or with extents of 1, such as a bias for rows or columns."""
        dims = [d for d in range(type_.rank) if self.chance(0.5)] or [type_.rank - 1]
        extents = [1 if self.chance(0.2) else type_.shape[d] for d in dims]
        source = self.type_of(extents, type_.element)
        contents = self.contents(type_.element, integral=integral)
        token = self.loaded(source, contents)
        operands = f"token {token.name}, {self.numbers(type_.shape, is_shape=True)}, {dims_operand(dims)}"
        vector = self.call(f"{self.vector_type(type_)} {self.callee('broadcast')}({operands})", type_)
        return KnownValue(vector, facts_from_memory(type_.element, contents))

    # Memory ------------------------------------------------------------------------------------------------------

    def stack_array(self, element: Type, count: int) -> BufferAddress:
        """The address of a new array on the stack."""
        array, name = self.fresh("a"), self.fresh("p")
        type_ = f"[{count} x {element}]"
        self.line(f"{array} = alloca {type_}, align {self.random.choice([8, 16, 64])}")
        pointer = f"{type_}* {array}" if self.typed else f"ptr {array}"
        self.line(f"{name} = getelementptr {type_}, {pointer}, i64 0, i64 0")
        return BufferAddress(ArrayParameter(name[1:], element, count), pointer=name[1:])

    def store_scalar(self, place: BufferAddress, scalar: str) -> None:
        """Store an element of an array."""
        element = place.buffer.element
        pointer = f"{self._pointer_type(element)} {self._address(place)}"
        self.line(f"store {element} {scalar}, {pointer}, {self._align(element)}")
        place.buffer.written[place.start] = True

    def clear(self, buffer: ArrayParameter) -> None:
        """Set all bytes of an array to zero."""
        pointer, suffix = f"ptr %{buffer.name}", "p0"
        if self.typed:
            name, suffix = self.fresh("c"), "p0i8"
            self.line(f"{name} = bitcast {buffer.element}* %{buffer.name} to i8*")
            pointer = f"i8* {name}"
        callee = f"@llvm.memset.{suffix}.i64"
        self.declarations.add(f"declare void {callee}({pointer.split()[0]}, i8, i64, i1)")
        size = buffer.count * dtype_of(buffer.element).itemsize
        self.line(f"call void {callee}({pointer}, i8 0, i64 {size}, i1 false)")
        buffer.written[:] = True

    # Calls -------------------------------------------------------------------------------------------------------

    def forwarded(self, buffer: ArrayParameter) -> ArrayParameter:
        """A new parameter to be passed on to a function that takes such an array."""
        parameter = self.buffer(buffer.element, buffer.count, buffer.contents)
        parameter.data[:], parameter.written[:] = buffer.data, buffer.written
        parameter.ulps, parameter.zeros = buffer.ulps, buffer.zeros
        return parameter

    def call_function(self, callee: RandomFunction, buffers: Sequence[ArrayParameter]) -> None:
        """Call another function of the program."""
        arguments = callee.calling.parameters([f"{self._pointer_type(b.element)} %{b.name}" for b in buffers])
        self.line(f"call {callee.calling.prefix}void @{callee.name}({arguments})")

    def type_for(self, element: Type, count: int) -> TensorType:
        """A tensor type with this number of elements."""
        rows = self.random.choice([d for d in range(1, min(count, 20) + 1) if count % d == 0])
        return TensorType.dense(element, (rows, count // rows))

    # Lines -------------------------------------------------------------------------------------------------------

    def let(self, text: str, type_: TensorType) -> Vector:
        """Write a line that defines a vector."""
        vector = self.vector("v", type_)
        self.line(f"{vector.name} = {text}")
        return vector

    def call(self, text: str, type_: TensorType) -> Vector:
        """Write a call that returns a vector."""
        return self.let(f"call {text}", type_)

    def tovector(self, token: TokenValue) -> Vector:
        """Write the call that returns a token's flattened vector."""
        vector = self.vector_type(token.type)
        return self.call(f"{vector} {self.callee('tovector')}(token {token.name})", token.type)

    def instruction(self, form: str, operands: Sequence[KnownValue], element: Type, facts: ValueFacts) -> KnownValue:
        """Write an instruction.

        Args:
            form: Its text, such as `add nsw {}, {}` or `zext {} to {}`. The first `{}` is the typed first operand, the
                next ones are names of operands; one more is the result's type.
            operands: The operands.
            element: Type of the result's elements.
            facts: What is known about the result.
        """
        first = operands[0].type
        type_ = TensorType(element, first.shape, first.layout, first.padding)
        filling = [operands[0].vector.typed, *(value.vector.name for value in operands[1:]), self.vector_type(type_)]
        return KnownValue(self.let(form.format(*filling), type_), facts)

    def token_of(self, value: KnownValue) -> TokenValue:
        """A token for a value."""
        if value.token is not None and self.chance(0.6):
            return value.token
        return self.typeinfo(value.vector, value.type)

    def any_token_of(self, value: KnownValue) -> TokenValue:
        """A token for a value, sometimes with another shape."""
        if value.type.is_padded or not self.chance(0.2):
            return self.token_of(value)
        return self.typeinfo(value.vector, self.reshaped(value.type))


# Facts about leaves ------------------------------------------------------------------------------------------------


def facts_from_memory(element: Type, contents: InitialContents | None) -> ValueFacts:
    """The facts about data from memory."""
    if contents is None or contents.wild:
        return unknown_facts(element)
    return range_facts(element, contents.low, contents.high)


def constant_literal(element: Type, number: int) -> str:
    """A constant of a type."""
    if isinstance(element, FloatType):
        return f"{number}.0"
    if isinstance(element, IntType) and element.bits == 1:
        return "true" if number & 1 else "false"
    return str(number)


Operation = Callable[[DataflowWriter], KnownValue | None]
