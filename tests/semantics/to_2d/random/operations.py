"""Operations of random programs for stage 1: products, transposes, copies, arithmetic, on whatever is in scope."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.semantics.to_2d.random.writer import DTYPES, ROOM, WIDER, Writer, ints
from tlx.intrinsics import lookup
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I8, I32, FloatType, Type


class Operations(Writer):
    """Writes operations.

    Attributes:
        elements: Types of the program's tensors.
    """

    elements: list[Type]

    def vector(self, element: Type, count: int, depth: int) -> str:
        """A flattened vector of that many elements."""
        known = [n for n, t in self.scope.vectors if t.element == element and t.count == count]
        memories = [m for m in self.scope.memories if m.element == element and m.count >= count]
        if known and self.chance(0.4):
            return self.pick(known)
        if self.chance(0.1):
            return self.renamed(element, count)
        if self.chance(0.1):
            dot = ".0" if isinstance(element, FloatType) else ""
            return f"<{', '.join(f'{element} {i % 4}{dot}' for i in range(count))}>"
        if memories and self.chance(0.6):
            memory = self.random.choice(memories)
            name = self.name("v")
            offset = self.random.randint(0, memory.count - count)
            pointer = self.vector_pointer(memory, offset, count)
            self.emit(f"{name} = load <{count} x {element}>, {pointer}, align 1")
            self.scope.vectors.append((name, TensorType.dense(element, (count,))))
            return name
        if depth and self.chance(0.7):
            rows = self.random.choice(
                [d for d in range(1, count + 1) if count % d == 0 and d <= 40 and count // d <= 80] or [1]
            )
            if rows == 1 and count > 80:
                return "zeroinitializer"
            return self.matmul((rows, count // rows), element)
        return "zeroinitializer"

    def renamed(self, element: Type, count: int) -> str:
        """A vector under another name, or with another element type."""
        name = self.name("renamed")
        narrow = next((e for e in self.elements if element == I32 and e == I8), None)
        if narrow is not None and self.chance(0.5):
            value = self.vector(narrow, 4 * count, 0)
            self.emit(f"{name} = bitcast <{4 * count} x i8> {value} to <{count} x i32>")
        else:
            self.emit(f"{name} = freeze <{count} x {element}> {self.vector(element, count, 0)}")
        self.scope.vectors.append((name, TensorType.dense(element, (count,))))
        return name

    def token(self, element: Type, extents: Sequence[int], depth: int = 1) -> tuple[str, TensorType]:
        """A token of these logical extents, from any source."""
        self.padded = self.chance(0.5)
        type_ = self.tensor_type(element, extents)
        if type_.count > ROOM // 2:
            self.padded = False
            type_ = self.tensor_type(element, extents)
        kind = self.random.choice(["load", "load", "pointer", "value", "value", "transpose"])
        fitting = [m for m in self.scope.memories if m.element == element and m.count >= type_.count]
        if kind == "transpose" and depth:
            return self.transposed(type_), type_
        if not fitting or kind in ("value", "transpose"):
            return self.typeinfo(self.vector(element, type_.count, depth), type_), type_
        memory = self.random.choice(fitting)
        if kind == "pointer":
            return self.pointer_typeinfo(memory, type_), type_
        return self.load(memory, type_), type_

    def transposed(self, type_: TensorType) -> str:
        """A token of `type_` whose vector is a transpose of another tensor."""
        order = self.random.sample(range(type_.rank), type_.rank)
        shape = tuple(type_.shape[k] for k in order)
        padding = tuple(type_.padding[k] for k in order)
        source = TensorType(type_.element, shape, tuple(range(type_.rank)), padding)
        memories = [m for m in self.scope.memories if m.element == type_.element and m.count >= source.count]
        if memories and self.chance(0.7):
            token = self.load(self.random.choice(memories), source)
        else:
            token = self.typeinfo(self.vector(type_.element, source.count, 0), source)
        layout = [order.index(k) for k in range(type_.rank)]
        vector = self.operation("transpose", f"token {token}, {ints(layout)}", source.transposed(layout))
        return self.typeinfo(vector, type_)

    def extents(self) -> tuple[int, ...]:
        sizes = [1, 2, 3, 4, 5, 6, 7]
        batch = self.random.choice([(), (), (2,), (3,), (2, 3), (1, 2), (2, 1, 2)])
        return (*batch, *(self.random.choice(sizes) for _ in range(3)))

    def narrower(self, element: Type) -> Type:
        return self.random.choice([e for e in self.elements if element in WIDER[e]])

    def matmul(self, shape: tuple[int, int] | None = None, element: Type | None = None) -> str:
        element = element or self.random.choice(self.elements)
        *batch, m, k, n = self.extents()
        if shape is not None:
            batch, m, n = [], *shape
        lhs, lhs_type = self.token(self.narrower(element), (*batch, m, k), 0 if shape else 1)
        rhs, rhs_type = self.token(self.narrower(element), (*batch, k, n), 0 if shape else 1)
        result = _choose(self, "matmul", (lhs_type, rhs_type), element)
        if shape is not None:
            result = TensorType.dense(element, shape)
        return self.operation("matmul", f"token {lhs}, token {rhs}", result)

    def mma(self, acc: tuple[str, TensorType] | None = None) -> str:
        if acc is None:
            _, _, _, m, k, n = (1, 1, 1, *self.extents()[-3:])
            acc = self.token(self.random.choice(self.elements), (m, n))
            forced = False
        else:
            (m, n), k = acc[1].extents, self.random.randint(1, 5)
            forced = True
        token, type_ = acc
        kinds = ["smma"] if isinstance(type_.element, FloatType) else ["umma", "smma", "usmma", "summa"]
        kind = self.pick(kinds)
        lhs, lhs_type = self.token(self.narrower(type_.element), (m, k))
        rhs, rhs_type = self.token(self.narrower(type_.element), (k, n))
        result = _choose(self, kind, (type_, lhs_type, rhs_type), type_.element)
        if forced:
            result = TensorType.dense(type_.element, (m, n))
        return self.operation(kind, f"token {token}, token {lhs}, token {rhs}", result)

    def transpose(self) -> str:
        extents = self.extents()
        token, type_ = self.token(self.random.choice(self.elements), extents)
        if type_.rank > 1 and self.chance(0.2):
            *outer, row, column = type_.layout
            return self.operation("transpose", f"token {token}", type_.transposed((*outer, column, row)))
        if self.chance(0.3):
            return self.operation("tovector", f"token {token}", type_)
        layout = self.random.sample(range(type_.rank), type_.rank)
        return self.operation("transpose", f"token {token}, {ints(layout)}", type_.transposed(layout))

    def tensor_store(self, token: tuple[str, TensorType] | None = None) -> None:
        if token is None and self.scope.vectors and self.chance(0.6):
            value, type_ = self.scope.vectors[-1]
            token = self.typeinfo(value, type_), type_
        name, type_ = token or self.token(
            self.random.choice(self.elements), self.extents()[-self.random.randint(1, 3) :]
        )
        memory = self.target(type_.element, type_.count)
        if memory is None:
            return
        pitches, reach = self.pitches(type_, memory.count, load=False)
        pointer = self.at(memory, self.random.randint(0, memory.count - reach))
        spelled = f"{self.pointer(type_.element)} {pointer}"
        self.emit(f"call void @llvm.tensor.store({spelled}, token {name}, {ints(pitches)})")

    def vector_store(self) -> None:
        if not self.scope.vectors:
            return
        name, type_ = self.random.choice(self.scope.vectors[-4:])
        memory = self.target(type_.element, type_.count)
        if memory is not None:
            pointer = self.vector_pointer(memory, self.random.randint(0, memory.count - type_.count), type_.count)
            self.emit(f"store {type_.vector} {name}, {pointer}, align 1")

    def copy(self) -> None:
        """A large load and store, as compilers emit for assignments."""
        count = self.random.choice([300, 700])
        source = self.random.choice(self.scope.memories)
        target = self.target(source.element, count)
        if target is None:
            return
        name = self.name("v")
        type_ = f"<{count} x {source.element}>"
        pointer = self.vector_pointer(source, self.random.randint(0, source.count - count), count)
        self.emit(f"{name} = load {type_}, {pointer}, align 1")
        self.scope.vectors.append((name, TensorType.dense(source.element, (count,))))
        if self.chance(0.3):
            self.poke()
        pointer = self.vector_pointer(target, self.random.randint(0, target.count - count), count)
        self.emit(f"store {type_} {name}, {pointer}, align 1")

    def stored_product(self) -> None:
        """An operation with the store of its result, which may be in place."""
        value = self.matmul() if self.chance(0.5) else self.transpose()
        type_ = next(t for n, t in self.scope.vectors if n == value)
        if self.chance(0.3):
            self.vector_store()
        else:
            self.tensor_store((self.typeinfo(value, type_), type_))

    def accumulate(self) -> None:
        """`C += A @ B`."""
        element = self.random.choice(self.elements)
        type_ = TensorType.dense(element, (self.random.randint(1, 6), self.random.randint(1, 6)))
        memory = self.target(element, type_.count)
        if memory is None:
            return
        pitches, reach = self.pitches(type_, memory.count, load=False)
        pointer = self.at(memory, self.random.randint(0, memory.count - reach))
        spelled = self.typed_load_pointer(element, pointer)
        token = self.name("t")
        dims = f"{ints(type_.shape)}, {ints(type_.layout)}, {ints(type_.padding)}, {ints(pitches)}"
        self.emit(f"{token} = call token @llvm.tensor.load({spelled}, {dims})")
        value = self.mma((token, type_))
        out = self.typeinfo(value, type_)
        self.emit(f"call void @llvm.tensor.store({self.pointer(element)} {pointer}, token {out}, {ints(pitches)})")

    def arithmetic(self) -> None:
        """Ordinary instructions on a small vector, or an element of any."""
        if not self.scope.vectors:
            return
        name, type_ = self.random.choice(self.scope.vectors[-4:])
        memory = self.target(type_.element, 1)
        if memory is None:
            return
        size = type_.count * DTYPES[type_.element].itemsize
        if size > 1024 or self.chance(0.4):
            element = self.name("e")
            self.emit(f"{element} = extractelement {type_.vector} {name}, i32 {self.random.randrange(type_.count)}")
            pointer = self.at(memory, self.random.randrange(100))
            self.emit(f"store {type_.element} {element}, {self.pointer(type_.element)} {pointer}, align 1")
            return
        value = self.name("s")
        opcode = "fadd" if isinstance(type_.element, FloatType) else "add"
        self.emit(f"{value} = {opcode} {type_.vector} {name}, {name}")
        self.scope.vectors.append((value, TensorType.dense(type_.element, type_.shape)))


def _choose(program: Writer, name: str, tensors: Sequence[TensorType], element: Type) -> TensorType:
    """One of the possible results of an operation: the preferred one, or one of another size."""
    row = lookup(f"llvm.tensor.{name}")
    assert row is not None
    allowed = row.infer(tensors, [], element)
    sizes = [t.count for t in allowed]
    fitting = [t for i, t in enumerate(allowed) if i == 0 or sizes.count(t.count) == 1]
    return program.random.choice(fitting) if math.prod(fitting[-1].shape) < ROOM // 2 else fitting[0]
