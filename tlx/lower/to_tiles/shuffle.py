"""Lines of elements that are put together from others, register by register.

%a = load %p, <1, 8>     %b = load %q, <1, 8>              a line each
%v = tovector(%a)        %w = tovector(%b)
%s = shufflevector %v, %w, <0, 1, 2, 3, 12, 13, 14, 15>    a step: what is needed of both, in place
%t = shufflevector %s, undef, <0, 4, 1, 5, 2, 6, 3, 7>     another one: in order
store %r, typeinfo(%t, <1, 8>)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import LoweringError
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import Tensor, TensorOp
from tlx.ir.values import Keyword, Local, Value, int_elements
from tlx.lower.to_tiles.problem import Shuffle
from tlx.lower.to_tiles.reading import Listing
from tlx.lower.to_tiles.tiles import new_kernel
from tlx.lower.to_tiles.view import View
from tlx.target import Target


@dataclass(eq=False)
class Lines:
    """A shuffle that is being read.

    Attributes:
        listing: The function's instructions.
        store: The store of its result.
        last: The shufflevector that makes it.
        places: First element and view of each line.
        instructions: Those that only compute the result.
    """

    listing: Listing
    store: TensorOp
    last: Instruction
    places: list[tuple[Value, View]] = field(default_factory=list[tuple[Value, View]])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _lines: list[Tensor] = field(default_factory=list[Tensor])
    _steps: list[tuple[Instruction, list[str], tuple[int, ...]]] = field(
        default_factory=list[tuple[Instruction, list[str], tuple[int, ...]]]
    )
    _loaded: dict[str, int] = field(default_factory=dict[str, int])

    def read(self) -> Shuffle:
        """The shuffle.

        Raises:
            LoweringError: Something in it is neither a line nor a step.
        """
        self._value(self.last)
        numbers = dict(self._loaded)
        steps = list[tuple[int, int, tuple[int, ...]]]()
        for instruction, sources, mask in self._steps:
            first, *other = (numbers[name] for name in sources)
            steps.append((first, other[0] if other else -1, mask))
            numbers[instruction.result or ""] = len(self._lines) + len(steps) - 1
        return Shuffle(tuple(line.type for line in self._lines), tuple(steps), self.store.tensors[0].type)

    @property
    def _refusal(self) -> LoweringError:
        return LoweringError("'shufflevector' is not lowered to tiles here", self.last.span)

    def _value(self, instruction: Instruction) -> None:
        """What an instruction makes, and all that it is made of."""
        if any(instruction is known for known in self.instructions):
            return
        op = self.listing.tensors.op_of(instruction)
        if op is not None:
            self._line(op)
        elif instruction.opcode == "shufflevector":
            self._step(instruction)
        else:
            raise self._refusal
        self.instructions.append(instruction)

    def _line(self, op: TensorOp) -> None:
        line = op.tensors[0]
        if op.intrinsic.name != "tovector" or line.kind != "load" or line.type.shape[0] != 1:
            raise self._refusal
        self._loaded[op.instruction.result or ""] = len(self._lines)
        self._lines.append(line)
        self.places.append((line.source, View.of(line.type, line.pitches)))

    def _step(self, instruction: Instruction) -> None:
        *sources, mask = instruction.operands
        places, names = int_elements(mask), [s.name for s in sources if isinstance(s, Local)]
        if places is None or not names or any(not isinstance(s, Local | Keyword) for s in sources):
            raise self._refusal
        for name in names:
            self._value(self.listing.made[name][1])
        self._steps.append((instruction, names, places))


def shuffled_by(listing: Listing, stored: Tensor) -> Instruction | None:
    """The shufflevector that makes what is stored, if one does."""
    _, made = listing.made.get(str(stored.source)[1:], (0, None))
    return made if made is not None and made.opcode == "shufflevector" else None


def shuffle_kernel(module: Module, shuffle: Shuffle, target: Target) -> Function:
    """Add the kernel for a shuffle to the module: a function of pointers to the destination and to each line."""
    element = shuffle.destination.element
    lines = [(f"x{number}", element, "") for number in range(len(shuffle.lines))]
    function = new_kernel(module, target, shuffle.kernel_name, [("to", element, ""), *lines])
    b = TensorBuilder(module, function)
    to, *sources = (argument.value for argument in function.arguments)
    values: list[Value] = []
    for source, type_ in zip(sources, shuffle.lines, strict=True):
        values.append(b.tovector(b.tensor_load(source, type_, None, "x"), type_, "x.line"))
    for first, other, mask in shuffle.steps:
        values.append(b.shuffle(values[first], values[other] if other >= 0 else None, mask, "line"))
    b.tensor_store(to, b.typeinfo(values[-1], shuffle.destination, "line"))
    b.ret()
    return function
