"""Shuffles: a stored shufflevector is a shuffle of lines, one line per load and one step per shufflevector.

%a = load %p, <1, 8>     %b = load %q, <1, 8>              two lines
%v = tovector(%a)        %w = tovector(%b)
%s = shufflevector %v, %w, <0, 1, 2, 3, 12, 13, 14, 15>    first step: blend
%t = shufflevector %s, undef, <0, 4, 1, 5, 2, 6, 3, 7>     second step: reorder
store %r, typeinfo(%t, <1, 8>)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import LoweringError
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.model import Tensor, TensorOp
from tlx.ir.values import Keyword, Local, Value, int_elements
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.match.trees import FunctionSnapshot
from tlx.lower.to_tiles.problem import LineShuffle


@dataclass(eq=False)
class ShuffleReader:
    """Reads a stored shuffle.

    Attributes:
        snapshot: The function's instructions.
        store: The store of its result.
        last: The shufflevector whose result is stored.
        places: First element and view of each line.
        instructions: Instructions that only compute the result.
    """

    snapshot: FunctionSnapshot
    store: TensorOp
    last: Instruction
    places: list[tuple[Value, MatrixView]] = field(default_factory=list[tuple[Value, MatrixView]])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    _lines: list[Tensor] = field(default_factory=list[Tensor])
    _steps: list[tuple[Instruction, list[str], tuple[int, ...]]] = field(
        default_factory=list[tuple[Instruction, list[str], tuple[int, ...]]]
    )
    _loaded: dict[str, int] = field(default_factory=dict[str, int])

    def read(self) -> LineShuffle:
        """The shuffle.

        Raises:
            LoweringError: An instruction in it is neither a line nor a step.
        """
        self._value(self.last)
        numbers = dict(self._loaded)
        steps = list[tuple[int, int, tuple[int, ...]]]()
        for instruction, sources, mask in self._steps:
            first, *second = (numbers[name] for name in sources)
            steps.append((first, second[0] if second else -1, mask))
            numbers[instruction.result or ""] = len(self._lines) + len(steps) - 1
        return LineShuffle(tuple(line.type for line in self._lines), tuple(steps), self.store.tensors[0].type)

    @property
    def _refusal(self) -> LoweringError:
        return LoweringError("'shufflevector' is not lowered to tiles here", self.last.span)

    def _value(self, instruction: Instruction) -> None:
        """Read an instruction and, first, the instructions it depends on."""
        if any(instruction is other for other in self.instructions):
            return
        op = self.snapshot.tensors.op_of(instruction)
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
        self.places.append((line.source, MatrixView.of(line.type, line.pitches)))

    def _step(self, instruction: Instruction) -> None:
        *sources, mask = instruction.operands
        places, names = int_elements(mask), [s.name for s in sources if isinstance(s, Local)]
        if places is None or not names or any(not isinstance(s, Local | Keyword) for s in sources):
            raise self._refusal
        for name in names:
            self._value(self.snapshot.definitions[name][1])
        self._steps.append((instruction, names, places))
