"""Random tensor programs for stage 1: straight lines, loops with carried tensors, branches, memory that may alias.

`Program(seed)` makes the text of a module with one function `@f` and the numpy arrays to call it on. Every program is
well defined: it reads only what its arrays hold, at sizes that are checked against them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.semantics.to_2d.random.operations import Operations
from tests.semantics.to_2d.random.writer import DTYPES, ROOM, Memory
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, Type

_HELPERS = """\
@slot = global PTR null

define void @poke(PTR %p) {
  store i8 3, PTR %p, align 1
  ret void
}

define void @touch() {
  %p = load PTR, SLOT @slot
  %none = icmp eq PTR %p, null
  br i1 %none, label %done, label %write

write:
  store i8 5, PTR %p, align 1
  br label %done

done:
  ret void
}

"""


class Program(Operations):
    """One random program.

    Attributes:
        text: The module.
        seed: What it was made from.
    """

    def __init__(self, seed: int, *, typed: bool = False, control: bool = True, steps: int = 6) -> None:
        super().__init__(seed, typed=typed)
        self.seed = seed
        self.control = control
        family: list[list[Type]] = [
            [I8, I16, I32],
            [FLOAT, DOUBLE],
            [BFLOAT, FLOAT],
            [HALF, FLOAT],
            [I32, I64],
            [I8, I32],
        ]
        self.elements = self.random.choice(family)
        self._parameters()
        self._body(steps)
        self.text = self._module()

    def _parameters(self) -> None:
        self.arguments: list[str] = []
        self.arrays: list[tuple[Type, int, int]] = []
        """Element type, buffer and offset in it of each pointer argument."""
        self.buffers: list[tuple[Type, int]] = []
        open_to_others: set[int] = set()
        for index in range(self.random.randint(3, 6)):
            element = self.random.choice(self.elements)
            noalias = self.chance(0.5)
            shared = [b for b, (t, _) in enumerate(self.buffers) if t == element and b in open_to_others]
            if not noalias and shared and self.chance(0.6):
                buffer, offset = self.random.choice(shared), self.random.randint(0, 200)
            else:
                buffer, offset = len(self.buffers), 0
                self.buffers.append((element, ROOM + 200))
                if not noalias:
                    open_to_others.add(buffer)
            self.arrays.append((element, buffer, offset))
            words = [self.pointer(element), "noalias" if noalias else "", f"%a{index}"]
            self.arguments.append(" ".join(w for w in words if w))
            self.scope.memories.append(Memory(f"%a{index}", element, ROOM))
        self.vector_arguments: list[TensorType] = []
        if self.chance(0.4):
            type_ = TensorType.dense(self.random.choice(self.elements), (self.random.choice([4, 12, 24]),))
            self.vector_arguments.append(type_)
            self.arguments.append(f"{type_.vector} %v")
            self.scope.vectors.append(("%v", type_))
        self.arguments.append("i32 %n")

    def _body(self, steps: int) -> None:
        self.globals: list[Type] = [self.random.choice(self.elements)] if self.chance(0.3) else []
        for index, element in enumerate(self.globals):
            name = f"@g{index}"
            if self.typed:
                name = self.name("global")
                array = f"[{ROOM} x {element}]"
                self.emit(f"{name} = bitcast {array}* @g{index} to {element}*")
            self._fill(Memory(name, element, ROOM))
        for element in dict.fromkeys(self.elements):
            if self.chance(0.4):
                name = self.name("local")
                self.emit(f"{name} = alloca [{ROOM} x {element}], align 16")
                flat = name
                if self.typed:
                    flat = self.name("flat")
                    array = f"[{ROOM} x {element}]"
                    self.emit(f"{flat} = bitcast {array}* {name} to {element}*")
                self._fill(Memory(flat, element, ROOM))
        self.region(steps, 2)
        self.result = self._return()

    def _fill(self, local: Memory) -> None:
        """Initialise stack memory: a copy of an array, or of zeros, as one flattened vector."""
        source = next((m for m in self.scope.memories if m.element == local.element), None)
        type_ = f"<{ROOM} x {local.element}>"
        value = "zeroinitializer"
        if source is not None and self.chance(0.7):
            value = self.name("w")
            self.emit(f"{value} = load {type_}, {self.vector_pointer(source, 0, ROOM)}, align 1")
        self.emit(f"store {type_} {value}, {self.vector_pointer(local, 0, ROOM)}, align 1")
        self.scope.memories.append(local)

    def _return(self) -> str:
        small = [(n, t) for n, t in self.scope.vectors if t.count <= 40]
        if small and self.chance(0.5):
            name, type_ = small[-1]
            self.emit(f"ret {type_.vector} {name}")
            return str(type_.vector)
        self.emit("ret void")
        return "void"

    def _module(self) -> str:
        body = "\n".join(self.lines)
        helpers = _HELPERS.replace("PTR", self.pointer(I8)).replace("SLOT", "i8**" if self.typed else "ptr")
        globals_ = "\n".join(f"@g{i} = global [{ROOM} x {t}] zeroinitializer" for i, t in enumerate(self.globals))
        return f"{helpers}{globals_}\ndefine {self.result} @f({', '.join(self.arguments)}) {{\nentry:\n{body}\n}}\n"

    def inputs(self) -> list[Array]:
        """Fresh arguments: small integers, so that sums of products are exact."""
        generator = np.random.default_rng(self.seed)
        buffers = [generator.integers(-2, 3, count).astype(DTYPES[element]) for element, count in self.buffers]
        arguments = [buffers[buffer][offset : offset + ROOM] for _, buffer, offset in self.arrays]
        arguments += [generator.integers(-2, 3, t.count).astype(DTYPES[t.element]) for t in self.vector_arguments]
        self.memory = buffers
        return arguments

    def region(self, steps: int, depth: int) -> None:
        for _ in range(steps):
            if self.control and depth and self.chance(0.25):
                (self.loop if self.chance(0.6) else self.branch)(depth - 1)
            else:
                self.step()

    def step(self) -> None:
        actions: list[Callable[[], object]] = [
            self.matmul,
            self.matmul,
            self.mma,
            self.mma,
            self.transpose,
            self.tensor_store,
            self.tensor_store,
            self.vector_store,
            self.poke,
            self.scalar_store,
            self.arithmetic,
            self.copy,
            self.stored_product,
            self.accumulate,
            self.leak,
            self.touch,
        ]
        self.random.choice(actions)()

    def loop(self, depth: int) -> None:
        """A loop that runs at least once and carries up to two vectors."""
        element = self.random.choice(self.elements)
        shape = self.random.choice([(4, 4), (9, 10), (16, 20), (6, 12)])
        type_ = TensorType.dense(element, shape)
        count = self.random.choice([1, 1, 2])
        first = [self.vector(element, type_.count, 1) for _ in range(count)]
        before, head, done = self.label, self.name("loop")[1:], self.name("done")[1:]
        self.emit(f"br label %{head}")
        self.block(head)
        index, following = self.name("i"), self.name("next")
        at = len(self.lines)
        carried = [self.name("phi") for _ in range(count)]
        self.scope.vectors.extend((name, type_) for name in carried)
        nexts: list[str] = []
        order = self.random.sample(range(count), count)
        if self.chance(0.3):
            self.region(1, depth)
        for which in order:
            token = self.typeinfo(carried[which], type_)
            nexts.append(self.next_value(carried[which], token, type_))
        if self.chance(0.5):
            self.region(1, depth)
        if self.chance(0.4):
            self.tensor_store((self.typeinfo(self.pick(carried), type_), type_))
        self.emit(f"{following} = add i32 {index}, 1")
        again = self.name("again")
        self.emit(f"{again} = icmp slt i32 {following}, {self.random.randint(1, 3)}")
        self.emit(f"br i1 {again}, label %{head}, label %{done}")
        phis = [f"  {index} = phi i32 [ 0, %{before} ], [ {following}, %{self.label} ]"]
        for name, start, last in zip(carried, first, nexts, strict=True):
            phis.append(f"  {name} = phi {type_.vector} [ {start}, %{before} ], [ {last}, %{self.label} ]")
        self.lines[at:at] = phis
        latch = self.label
        self.block(done)
        if self.chance(0.4):
            out = self.name("lcssa")
            self.emit(f"{out} = phi {type_.vector} [ {self.pick(nexts)}, %{latch} ]")
            self.scope.vectors.append((out, type_))
        for name in carried + nexts:
            if self.chance(0.5):
                self.tensor_store((self.typeinfo(name, type_), type_))

    def next_value(self, carried: str, token: str, type_: TensorType) -> str:
        """The next values of a loop's carried vectors, computed from them."""
        element, (rows, columns) = type_.element, type_.extents
        kind = self.random.choice(["mma", "mma", "mma", "same", "lhs", "both", "flipped", "other"])
        if kind == "lhs":
            other, _ = self.token(element, (columns, columns))
            return self.operation("matmul", f"token {token}, token {other}", type_)
        if kind == "both":
            other, _ = self.token(element, (rows, rows))
            return self.operation("smma", f"token {token}, token {other}, token {token}", type_)
        if kind == "flipped":
            flipped = TensorType(element, (columns, rows), (1, 0), (0, 0))
            return self.mma(acc=(self.typeinfo(carried, flipped), flipped))
        if kind == "other":
            return self.vector(element, type_.count, 1)
        return self.mma(acc=(token, type_)) if kind == "mma" else carried

    def branch(self, depth: int) -> None:
        """Two branches that each compute a vector, and a phi of them."""
        element = self.random.choice(self.elements)
        count = self.random.choice([12, 96, 320])
        then, other, join = (self.name(stem)[1:] for stem in ("then", "else", "join"))
        condition = self.name("c")
        self.emit(f"{condition} = icmp eq i32 %n, {self.random.randint(0, 1)}")
        self.emit(f"br i1 {condition}, label %{then}, label %{other}")
        pairs: list[str] = []
        outer = self.scope
        for label in (then, other):
            self.scope = outer.copy()
            self.block(label)
            self.region(self.random.randint(0, 1), depth)
            value = self.vector(element, count, 1)
            pairs.append(f"[ {value}, %{self.label} ]")
            self.emit(f"br label %{join}")
        self.scope = outer
        self.block(join)
        name = self.name("phi")
        type_ = TensorType.dense(element, (count,))
        self.emit(f"{name} = phi {type_.vector} {', '.join(pairs)}")
        self.scope.vectors.append((name, type_))
