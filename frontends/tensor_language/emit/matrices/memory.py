"""Loads, stores, atomic updates and prefetches of cooperative matrices.

    A[i, j] := M[x + i, y + j]      .t:  A[i, j] := M[x + j, y + i]

The second mode of the memref counts *lines*: columns of A, or its rows with `.t`. If the first stride is 1, the second
is known and no bounds are checked, the matrix is a tensor in memory, unless lines that are stored overlap (the last one
written wins). Everything else is copied line by line through a buffer; a bound along the line is a mask, and a line out
of bounds has an all-false mask:

    line   0   1   2   3        s2 = 3
    y ->   x   x   x   .   ^
           x   x   x   .   | mask along the line
           .   .   .   .   v   s1 = 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tlx.frontends.tensor_language.emit import atomics, threads
from tlx.frontends.tensor_language.emit.arithmetic.registers import gathered
from tlx.frontends.tensor_language.emit.arithmetic.scalars import is_int
from tlx.frontends.tensor_language.emit.emitter import Emitter, Matrix, Memref, Parts, memory_type, register_type
from tlx.frontends.tensor_language.emit.matrices import distributed
from tlx.frontends.tensor_language.emit.matrices.chunks import (
    ChunkLayout,
    elements_of,
    load_chunks,
    store_chunks,
    words_of,
)
from tlx.frontends.tensor_language.emit.matrices.fragments import (
    LINE_BYTES,
    FragmentLayout,
    from_registers,
    load_registers,
    loads_lines,
    registers_of,
)
from tlx.frontends.tensor_language.emit.matrices.values import (
    MatrixInMemory,
    as_tensor,
    from_tensor,
    matrix_type,
    new_buffer,
    read_entries,
    reload,
    spill,
    tensor_type,
    write_entries,
)
from tlx.frontends.tensor_language.emit.memory import (
    address_of,
    gather,
    masked_load,
    masked_store,
    offset_of,
    read_parts,
    scatter,
    unbounded_gep,
    write_parts,
)
from tlx.frontends.tensor_language.emit.subgroups import all_of, first_active, run_if, to_uniform_memref
from tlx.frontends.tensor_language.emit.tensors import LARGEST
from tlx.frontends.tensor_language.operations.subgroups import (
    CooperativeMatrixAtomicUpdate,
    CooperativeMatrixLoad,
    CooperativeMatrixPrefetch,
    CooperativeMatrixStore,
    MatrixAccess,
)
from tlx.frontends.tensor_language.syntax.nodes import Name
from tlx.frontends.tensor_language.types import CoopMatrixType
from tlx.ir.instructions import Block
from tlx.ir.types import I32, I64, VOID, VectorType
from tlx.ir.values import ConstInt, Value, const_int, const_ints


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a memref that a matrix is loaded from or stored to.

    Attributes:
        memref: The memref.
        x: First index along the first mode, i64.
        y: First index along the second mode, i64.
        by_rows: Whether a line of the memref is a row of the matrix (`.t`).
        checks_line: Whether indices along a line are checked.
        checks_lines: Whether indices across lines are checked.
    """

    memref: Memref
    x: Value
    y: Value
    by_rows: bool
    checks_line: bool
    checks_lines: bool

    @property
    def is_checked(self) -> bool:
        """Whether anything is checked."""
        return self.checks_line or self.checks_lines

    @property
    def is_tensor(self) -> bool:
        """Whether a tensor operation can read all of it."""
        first, second = self.memref.stride
        is_real = self.memref.type.element.kind != "complex"
        is_known = is_int(first, 1) and isinstance(second, ConstInt) and second.value <= LARGEST
        return is_known and is_real and not self.is_checked

    def is_target(self, type_: CoopMatrixType) -> bool:
        """Whether a tensor operation can write a matrix to it: lines do not overlap."""
        return self.is_tensor and _pitches(self)[1] >= (type_.columns if self.by_rows else type_.rows)


def _copy_lines(e: Emitter, window: Window, buffer: MatrixInMemory, *, load: bool) -> None:
    """Copy a matrix from the memref to the buffer, or back, line by line."""
    with e.b.loop(0, buffer.lines, name="line") as line:
        _copy_line(e, window, buffer, line.index, load=load)


def prefetch(e: Emitter, i: CooperativeMatrixPrefetch) -> None:
    """`cooperative_matrix_prefetch level, %memref[%x,%y], rows, columns`: the first cache line of each 64 bytes."""
    if e.item is not None:  # work-items of other warps hide the latency
        return
    memref = to_uniform_memref(e, e.memref(i.source))
    element = memref.type.element
    step = max(1, 64 // element.size)
    locality = max(0, 3 - i.level)
    x, y = (first_active(e, e.number(name).value) for name in (i.x, i.y))
    args = [const_int(I32, 0), const_int(I32, locality), const_int(I32, 1)]
    with e.b.loop(0, i.columns, name="column") as column, e.b.loop(0, i.rows, step, name="row") as row:
        address = address_of(e, memref, [e.b.add(x, row.index), e.b.add(y, column.index)])
        e.b.call_intrinsic("llvm.prefetch", [address.type], VOID, [address, *args])


def window(e: Emitter, i: MatrixAccess, memref: Name) -> Window:
    """The window of a matrix instruction."""
    by_rows = i.transpose == "t"
    rows, columns = i.checked in ("rows_checked", "both_checked"), i.checked in ("cols_checked", "both_checked")
    along, across = (columns, rows) if by_rows else (rows, columns)
    x, y = (first_active(e, e.number(name).value) for name in (i.x, i.y))
    return Window(to_uniform_memref(e, e.memref(memref)), x, y, by_rows, along, across)


def _first_address(e: Emitter, window: Window) -> Value:
    """Address of the entry at row 0, column 0."""
    return address_of(e, window.memref, [window.x, window.y])


def _load_tensor(e: Emitter, window: Window, type_: CoopMatrixType) -> Matrix:
    tensor = tensor_type(type_, by_rows=window.by_rows)
    token = e.b.tensor_load(_first_address(e, window), tensor, _pitches(window))
    return Matrix(type_, (from_tensor(e, token, by_rows=window.by_rows),))


def _store_tensor(e: Emitter, window: Window, matrix: Matrix) -> None:
    token = as_tensor(e, matrix.type, matrix.value, by_rows=window.by_rows)
    e.b.tensor_store(_first_address(e, window), token, _pitches(window))


def _pitches(window: Window) -> tuple[int, int]:
    second = window.memref.stride[1]
    assert isinstance(second, ConstInt)
    return 0, second.value


def _copy_line(e: Emitter, window: Window, buffer: MatrixInMemory, line: Value, *, load: bool) -> None:
    """Copy a line from the memref to the buffer, or back."""
    memref, element = window.memref, memory_type(buffer.type.component)
    offset = offset_of(e, memref, [window.x, e.b.add(window.y, line)])
    mask = _mask(e, window, buffer, line)
    complex_ = len(buffer.pointers) == 2
    step = memref.stride[0]
    for part, own in enumerate(buffer.pointers):
        inside = e.b.gep(element, own, e.b.mul(line, buffer.length))
        base = _outside(e, memref, offset, part)
        if is_int(step, 1) and not complex_:
            outside = base
        else:
            outside = _addresses(e, memref, base, buffer.length, step, 2 if complex_ else 1)
        align, vector = buffer.type.component.part.size, VectorType(buffer.length, element)
        if load:
            e.b.store(_read(e, outside, vector, mask, align), inside, align)
        else:
            _write(e, e.b.load(vector, inside, align), outside, mask, align)


def _outside(e: Emitter, memref: Memref, offset: Value, part: int) -> Value:
    """Address of the first entry of a line, which may be out of bounds."""
    element = memory_type(memref.type.element)
    if memref.type.element.kind == "complex":
        offset = e.b.add(e.b.mul(offset, 2), part)
    return unbounded_gep(e, element, memref.pointer, offset)


def _addresses(e: Emitter, memref: Memref, base: Value, count: int, step: Value, width: int) -> Value:
    """Addresses of the entries of a line whose stride is not 1."""
    element = memory_type(memref.type.element)
    numbers = const_ints(I64, [k * width for k in range(count)])
    offsets = e.b.mul(numbers, e.b.splat(step, count))
    return unbounded_gep(e, element, base, offsets)


def _mask(e: Emitter, window: Window, buffer: MatrixInMemory, line: Value) -> Value | None:
    """Which entries of a line are in bounds; None if nothing is checked."""
    count = buffer.length
    extents = window.memref.shape
    mask: Value | None = None
    if window.checks_line:
        numbers = const_ints(I64, range(count))
        positions = e.b.add(e.b.splat(window.x, count), numbers)
        mask = e.b.icmp("ult", positions, e.b.splat(extents[0], count))
    if window.checks_lines:
        across = e.b.splat(e.b.icmp("ult", e.b.add(window.y, line), extents[1]), count)
        mask = across if mask is None else e.b.binary("and", mask, across)
    return mask


def _read(e: Emitter, outside: Value, vector: VectorType, mask: Value | None, align: int) -> Value:
    """Load a line from its address, or from an address for each entry; zeros where the mask is off."""
    if isinstance(outside.type, VectorType):
        return gather(e, vector.element, outside, align, mask)
    return masked_load(e, vector, outside, align, mask)


def _write(e: Emitter, line: Value, outside: Value, mask: Value | None, align: int) -> None:
    """Write a line where the mask is on."""
    if isinstance(outside.type, VectorType):
        scatter(e, line, outside, align, mask)
    else:
        masked_store(e, line, outside, align, mask)


Entry = Callable[[Value, Value], None]  # takes the address in the memref and the offset in the buffer


def load(e: Emitter, i: CooperativeMatrixLoad) -> None:
    """`%r = cooperative_matrix_load[.t][.X_checked] %memref[%x,%y] : type`, or its atomic form."""
    type_, where = matrix_type(i), window(e, i, i.source)
    if e.item is not None:
        memory = where.memref.type

        def read(address: Value, _: Parts) -> Parts:
            if i.atomic:
                return atomics.load_scalar(e, address, memory, i.semantics)
            return read_parts(e, address, memory.element)

        def load_each() -> Parts:
            return _each_component(e, where, type_, None, read).parts

        e.bind(i.result, _load_on_grid(e, where, type_, load_each, atomic=i.atomic))
        return
    if where.is_tensor and not i.atomic:
        e.bind(i.result, _load_tensor(e, where, type_))
        return
    buffer = new_buffer(e, type_, by_rows=where.by_rows)

    def entry(address: Value, offset: Value) -> None:
        write_entries(e, buffer, offset, atomics.load_scalar(e, address, where.memref.type, i.semantics))

    if i.atomic:
        _each_entry(e, where, _zeros(e, buffer, where), entry)
    else:
        _copy_lines(e, where, buffer, load=True)
    e.bind(i.result, reload(e, buffer))


def store(e: Emitter, i: CooperativeMatrixStore) -> None:
    """`cooperative_matrix_store[.t][.X_checked] %matrix, %memref[%x,%y]`, or its atomic form."""
    matrix, where = e.matrix(i.matrix), window(e, i, i.destination)
    if e.item is not None:
        memory = where.memref.type

        def write(address: Value, parts: Parts) -> Parts:
            if i.atomic:
                atomics.store_scalar(e, address, memory, parts, i.semantics)
            else:
                write_parts(e, address, memory.element, parts)
            return ()

        threads.barrier(e)
        if (chunks := distributed.chunks_of(e, matrix.type)) is not None:
            _store_chunks(e, where, chunks, matrix)
        else:
            _each_component(e, where, matrix.type, matrix, write)
        threads.barrier(e)
        return
    if where.is_target(matrix.type) and not i.atomic:
        _store_tensor(e, where, matrix)
        return
    buffer = spill(e, matrix, by_rows=where.by_rows)

    def entry(address: Value, offset: Value) -> None:
        atomics.store_scalar(e, address, where.memref.type, read_entries(e, buffer, offset), i.semantics)

    if i.atomic:
        _each_entry(e, where, buffer, entry)
    else:
        _copy_lines(e, where, buffer, load=False)


def update(e: Emitter, i: CooperativeMatrixAtomicUpdate) -> None:
    """`%old = cooperative_matrix_atomic_add %matrix, %memref[%x,%y] : type`; zeros where nothing is updated."""
    where = window(e, i, i.destination)
    if e.item is not None:
        memory = where.memref.type

        def change(address: Value, parts: Parts) -> Parts:
            return atomics.update_scalar(e, i.op, address, memory, parts, i.semantics)

        e.bind(i.result, _each_component(e, where, matrix_type(i), e.matrix(i.matrix), change))
        return
    source = spill(e, e.matrix(i.matrix), by_rows=where.by_rows)
    result = _zeros(e, new_buffer(e, matrix_type(i), by_rows=where.by_rows), where)

    def entry(address: Value, offset: Value) -> None:
        parts = read_entries(e, source, offset)
        write_entries(e, result, offset, atomics.update_scalar(e, i.op, address, where.memref.type, parts, i.semantics))

    _each_entry(e, where, source, entry)
    e.bind(i.result, reload(e, result))


def _load_on_grid(
    e: Emitter, window: Window, type_: CoopMatrixType, load_each: Callable[[], Parts], *, atomic: bool
) -> Matrix:
    """A matrix: as lines of memory, if they are aligned and inside of it, otherwise each component."""
    if (chunks := distributed.chunks_of(e, type_)) is not None:
        return Matrix(type_, _load_chunks(e, window, chunks))
    layout, in_registers = distributed.layout_of(e, type_), distributed.is_in_registers(e, type_)
    lines = not atomic and isinstance(layout, FragmentLayout) and loads_lines(layout, by_rows=window.by_rows)
    if not isinstance(layout, FragmentLayout) or not (in_registers or lines):
        return Matrix(type_, load_each())
    if not lines or window.memref.type.address_space != "local":
        (components,) = load_each()
        return Matrix(type_, (gathered(e, registers_of(e, components, layout)) if in_registers else components,))
    pitch = window.memref.stride[1]
    registers = _either(
        e,
        _has_lines(e, window, type_),
        lambda: load_registers(e, layout, _first_address(e, window), pitch, by_rows=window.by_rows),
        lambda: tuple(registers_of(e, load_each()[0], layout)),
    )
    return Matrix(type_, (gathered(e, registers) if in_registers else from_registers(e, layout, registers),))


def _either(e: Emitter, condition: Value | bool, fast: Callable[[], Parts], slow: Callable[[], Parts]) -> Parts:
    """The values of one of two pieces of code; the fast one's if a condition, the same in all threads, holds."""
    if isinstance(condition, bool):
        return fast() if condition else slow()
    blocks = e.b.if_else_blocks(condition, ("lines", "components"))
    end = e.b.new_block("matrix", blocks[1])
    results: list[tuple[Parts, Block]] = []
    for block, code in zip(blocks, (fast, slow), strict=True):
        e.b.at_end(block)
        results.append((code(), e.b.block))
        e.b.branch(end)
    e.b.at_end(end)
    columns = zip(*(parts for parts, _ in results), strict=True)
    origins = [block for _, block in results]
    return tuple(e.b.phi(values[0].type, list(zip(values, origins, strict=True))) for values in columns)


def _has_lines(e: Emitter, window: Window, type_: CoopMatrixType) -> Value | bool:
    """Whether each line of a matrix is aligned in memory, and all of it is inside."""
    b, memref, size = e.b, window.memref, type_.component.size
    step, pitch = memref.stride
    if not is_int(step, 1):
        return False
    offsets = [b.mul(value, size) for value in (window.x, pitch)]
    if memref.alignment % LINE_BYTES:
        offsets.append(b.cast("ptrtoint", memref.pointer, I64))
    if any(isinstance(offset, ConstInt) and offset.value % LINE_BYTES for offset in offsets):
        return False
    conditions = [
        b.icmp("eq", b.binary("and", offset, const_int(I64, LINE_BYTES - 1)), 0)
        for offset in offsets
        if not isinstance(offset, ConstInt)
    ]
    lines, length = (type_.rows, type_.columns) if window.by_rows else (type_.columns, type_.rows)
    checked = ((window.checks_line, window.x, length, 0), (window.checks_lines, window.y, lines, 1))
    for first, extent, mode in ((first, extent, mode) for checks, first, extent, mode in checked if checks):
        last = b.sub(memref.shape[mode], const_int(I64, extent))
        conditions += [b.icmp("sge", last, 0), b.icmp("ule", first, last)]
    return all_of(e, conditions) if conditions else True


def _load_chunks(e: Emitter, window: Window, layout: ChunkLayout) -> Parts:
    """What each thread holds of a matrix that is only copied."""
    element = memory_type(layout.type.component)

    def each() -> Parts:
        elements: list[Value] = []
        for x, y, inside in _places_of_chunks(e, window, layout):
            before = e.b.block
            with threads.where(e, inside):
                value = e.b.load(element, address_of(e, window.memref, [x, y]), layout.type.component.size)
                last = e.b.block
            zero = threads.zero_of(element)
            elements.append(value if inside is None else e.b.phi(element, [(value, last), (zero, before)]))
        return (words_of(e, layout, elements),)

    def lines() -> Parts:
        return (load_chunks(e, layout, _address_in(e, window)),)

    return _either(e, _has_lines(e, window, layout.type), lines, each)


def _store_chunks(e: Emitter, window: Window, layout: ChunkLayout, matrix: Matrix) -> None:
    """Store each thread's part of a matrix that is only copied."""

    def each() -> Parts:
        elements = elements_of(e, layout, matrix.value)
        for element, (x, y, inside) in zip(elements, _places_of_chunks(e, window, layout), strict=True):
            with threads.where(e, inside):
                e.b.store(element, address_of(e, window.memref, [x, y]), layout.type.component.size)
        return ()

    def lines() -> Parts:
        store_chunks(e, layout, matrix.value, _address_in(e, window))
        return ()

    _either(e, _has_lines(e, window, layout.type), lines, each)


def _address_in(e: Emitter, window: Window) -> Callable[[Value, Value], Value]:
    """Emits the address of an element, given its row and column."""
    return lambda row, column: address_of(e, window.memref, [e.b.add(window.x, row), e.b.add(window.y, column)])


def _places_of_chunks(e: Emitter, window: Window, layout: ChunkLayout) -> Iterator[tuple[Value, Value, Value | None]]:
    """Indices of the elements that a thread holds, and whether each is in bounds."""
    for chunk in range(layout.chunks):
        row, column = layout.place(e, chunk)
        for number in range(layout.elements):
            x, y = e.b.add(window.x, e.b.add(row, number)), e.b.add(window.y, column)
            yield x, y, _inside(e, window, x, y)


def _each_component(
    e: Emitter, window: Window, type_: CoopMatrixType, matrix: Matrix | None, access: Callable[[Value, Parts], Parts]
) -> Matrix:
    """On a grid, access each component that is in bounds; returns the results, and zeros for the others.

    Args:
        e: The emitter.
        window: The window.
        type_: Type of the matrix.
        matrix: The matrix; None if nothing is written.
        access: Emits the access, given the address and the component's parts; returns no or as many parts.
    """
    b, components = e.b, list[Parts]()
    zeros = tuple(threads.zero_of(register_type(type_.component)) for _ in range(2 if _is_complex(type_) else 1))
    layout = distributed.layout_of(e, type_)
    for number in range(layout.components):
        entry = distributed.entry_of(e, layout, number)
        along, across = (entry.column, entry.row) if window.by_rows else (entry.row, entry.column)
        x, y = b.add(window.x, along), b.add(window.y, across)
        inside = [c for c in (entry.exists, _inside(e, window, x, y)) if c is not None]
        condition, before = (all_of(e, inside) if inside else None), b.block
        with threads.where(e, condition):
            old = distributed.component_of(e, matrix, number) if matrix is not None else ()
            parts = access(address_of(e, window.memref, [x, y]), old)
            last = b.block
        if condition is not None:
            parts = tuple(b.phi(p.type, [(p, last), (zero, before)]) for p, zero in zip(parts, zeros, strict=False))
        components.append(parts or zeros)
    return distributed.from_components(e, type_, components)


def _is_complex(type_: CoopMatrixType) -> bool:
    return type_.component.kind == "complex"


def _each_entry(e: Emitter, window: Window, buffer: MatrixInMemory, entry: Entry) -> None:
    """Emit a loop over the entries that are in bounds."""
    b = e.b
    with b.loop(0, buffer.lines, name="line") as line, b.loop(0, buffer.length, name="entry") as number:
        x, y = b.add(window.x, number.index), b.add(window.y, line.index)
        with run_if(e, _inside(e, window, x, y), "inside", "done"):
            address = address_of(e, window.memref, [x, y])
            entry(address, b.add(b.mul(line.index, buffer.length), number.index))


def _inside(e: Emitter, window: Window, x: Value, y: Value) -> Value | None:
    """Whether an entry is in bounds; None if that is not checked."""
    conditions: list[Value] = []
    if window.checks_line:
        conditions.append(e.b.icmp("ult", x, window.memref.shape[0]))
    if window.checks_lines:
        conditions.append(e.b.icmp("ult", y, window.memref.shape[1]))
    return all_of(e, conditions) if conditions else None


def _zeros(e: Emitter, buffer: MatrixInMemory, window: Window) -> MatrixInMemory:
    """A buffer, zeroed if not all of it will be written."""
    if window.is_checked:
        size = buffer.type.rows * buffer.type.columns * buffer.type.component.part.size
        for pointer in buffer.pointers:
            e.b.memset(pointer, 0, size)
    return buffer
