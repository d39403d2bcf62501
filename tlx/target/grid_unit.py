"""Grids: machines that run a kernel as blocks of threads, with memory shared by a block and products of fragments.

A warp is a set of threads that run in step. The operands of a fragment product are spread over the threads of a warp:

    rows x depth by depth x columns, accumulated in rows x columns
    thread t holds, for i = t / 4 and j = 2 (t mod 4), the sums (i, j), (i, j + 1), (i + rows / 2, j), ...

    and as left operand, the same elements of two such products side by side

A fragment is loaded from shared memory as four matrices of 8 lines x 16 bytes; thread t passes the address of line
t mod 8 of matrix t / 8. Transposed loads swap lines and elements of each matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tlx.ir.builder import Builder
    from tlx.ir.module import Module
    from tlx.ir.values import Value
    from tlx.target.instructions.dots import Sign
    from tlx.target.launches import FunctionLaunches, Launch, TensorMap

CHUNK_BYTES: Final = 16
"""Bytes that a thread reads or writes at once at most: a chunk. `GridOperations.copy` copies one."""
LINE_BYTES: Final = 128
"""Bytes of a line of shared memory, whose eight chunks are in different banks, and of a line of global memory."""


class GridOperations(Protocol):
    """The operations of a grid from which kernels are composed, emitted at the position of a builder."""

    def declare(self, module: Module) -> None:
        """Add what kernels refer to, such as the shared memory, to a module."""
        ...

    def annotate(self, module: Module, sizes: Mapping[str, tuple[int, int]]) -> None:
        """Mark functions as kernels, each with the threads of a block and the `min_resident_blocks` of its shape."""
        ...

    def thread(self, b: Builder) -> Value:
        """Number of the thread in its block, i32."""
        ...

    def block(self, b: Builder) -> Value:
        """Number of the block in the grid, i32."""
        ...

    def shared(self, b: Builder) -> Value:
        """Address of the block's shared memory."""
        ...

    def barrier(self, b: Builder) -> None:
        """Wait for all threads of the block; what they wrote to shared memory is visible then."""
        ...

    def subgroup_barrier(self, b: Builder, size: int) -> None:
        """Wait for all threads of a subgroup: `size` adjacent ones of a warp; they see what each has written."""
        ...

    def shuffle(self, b: Builder, value: Value, lane: Value, size: int) -> Value:
        """The i32 that a lane (i32) of the subgroup passes; all of its threads call it together."""
        ...

    def ballot(self, b: Builder, flag: Value, size: int) -> Value:
        """The i1 that each lane of the subgroup passes, as the bits of an i32; all of its threads call it together."""
        ...

    def copy(self, b: Builder, to: Value, source: Value, valid: Value | None) -> None:
        """Start to copy a chunk from global to shared memory; those after the first `valid` (i32) become zero."""
        ...

    def commit(self, b: Builder) -> None:
        """Make a group of the copies that the thread has started since its last group."""
        ...

    def wait(self, b: Builder, pending: int) -> None:
        """Wait until at most that many of the thread's groups are still being copied."""
        ...

    def load_fragments(self, b: Builder, address: Value, *, transposed: bool) -> list[Value]:
        """Four matrices of 8 lines x 16 bytes of shared memory, spread over the warp: an i32 of each."""
        ...

    def power_of_two(self, b: Builder, exponent: Value) -> Value:
        """2 to the power of a float, with a relative error of 2^-22; subnormal results are zero."""
        ...


class TensorCopies(Protocol):
    """Copies of boxes of tensors that one thread starts, and barriers in shared memory that count what has arrived.

    A barrier is 8 bytes. A phase of it ends when as many threads have arrived as it was made for, and as many bytes as
    they expect. Phases have the parities 0, 1, 0, ...; the one before the first has 1.

    Attributes:
        map_bytes: Bytes of a tensor map, which kernels are passed by value.
        map_alignment: Its alignment.
        line_bytes: Bytes of a line of a box, which is swizzled.
        most_dimensions: Dimensions that a tensor has at most.
    """

    map_bytes: int
    map_alignment: int
    line_bytes: int
    most_dimensions: int

    def make_barrier(self, b: Builder, barrier: Value, arrivals: int) -> None:
        """Make a barrier for some threads."""
        ...

    def publish_barriers(self, b: Builder) -> None:
        """Make the barriers that the thread has made visible to copies; the block's barrier has to follow."""
        ...

    def expect(self, b: Builder, barrier: Value, size: int) -> None:
        """Arrive, and expect some bytes in this phase."""
        ...

    def copy(self, b: Builder, to: Value, tensor_map: Value, at: Sequence[Value], barrier: Value) -> None:
        """Start to copy the box at a place (i32, the contiguous dimension first) to shared memory."""
        ...

    def arrive(self, b: Builder, barrier: Value) -> None:
        """Arrive."""
        ...

    def wait(self, b: Builder, barrier: Value, parity: Value) -> None:
        """Wait until the phase of some parity (i32) has ended."""
        ...


class DeviceArray(NamedTuple):
    """An array in the memory of a device.

    Attributes:
        address: Its first element.
        shape: Its extents.
        strides: Bytes from an element to the next in each dimension; None if it is C-contiguous.
        element: Element type in LLVM's spelling, of integers `i` and their bits; empty if LLVM has none.
        element_bytes: Bytes of an element.
        owner: What keeps it alive.
        stream: The stream in whose order its owner uses it; None if that is not known, or if it need not be waited for.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    element: str
    element_bytes: int
    owner: object
    stream: int | None = None

    @property
    def size(self) -> int:
        """Bytes of its elements."""
        return prod(self.shape) * self.element_bytes

    @property
    def is_dense(self) -> bool:
        """Whether it is C-contiguous."""
        expected = self.element_bytes
        for extent, stride in zip(reversed(self.shape), reversed(self.strides or ()), strict=False):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True


class Temporaries(NamedTuple):
    """Memory for the temporaries of a call.

    Attributes:
        addresses: Where each of them is.
        size: Bytes of the block in which they are.
        free_blocks: The blocks for later calls, to which this one is added; None if it is freed.
    """

    addresses: tuple[int, ...]
    size: int
    free_blocks: list[Any] | None = None


class DeviceCode(Protocol):
    """Code loaded on a device. Operations run in the order of a stream, given by its handle; 0: the default one.

    Attributes:
        has_default_stream: Whether all threads have the same default stream, which cannot be captured then.
    """

    has_default_stream: bool

    def current(self) -> AbstractContextManager[None]:
        """Makes the device's context the thread's current one; inside of it, the other functions are called."""
        ...

    def array(self, value: object, stream: int) -> DeviceArray | None:
        """The array that a Python object is, if it is one in the device's memory.

        Args:
            value: The object.
            stream: The stream that will use it; it waits for others, unless the array has a stream.

        Raises:
            TlxError: It is in the memory of another device.
        """
        ...

    def address_and_layout(self, value: object, stream: int) -> tuple[int, Hashable] | None:
        """The address of an array, and what determines its elements, shape and strides; None if `array` has to tell.

        Args:
            value: The object.
            stream: The stream that will use it, which need not wait for another one.
        """
        ...

    def wait_for_stream(self, stream: int, other: int) -> None:
        """Have what is launched in a stream wait for what has been launched in another one."""
        ...

    def wait_for_event(self, event: int, stream: int) -> None:
        """Have what is launched in the stream wait for an event, given by its handle."""
        ...

    def record_event(self, event: int, stream: int) -> None:
        """Record an event after what has been launched in the stream."""
        ...

    def allocate(self, size: int, stream: int) -> int:
        """Memory for some bytes."""
        ...

    def free(self, address: int, stream: int) -> None:
        """Free memory."""
        ...

    def reserve(self, sizes: tuple[int, ...], stream: int, *, captured: bool) -> Temporaries:
        """Memory for the temporaries of one call, for what it launches in the stream.

        Args:
            sizes: Their bytes.
            stream: The stream.
            captured: Whether the stream is being captured, so that what is launched runs later.

        Raises:
            TlxError: There is not enough memory.
        """
        ...

    def release(self, temporaries: Temporaries, stream: int) -> None:
        """Give them back, when everything that uses them has been launched."""
        ...

    def upload(self, address: int, host: int, size: int, stream: int) -> None:
        """Start to copy bytes to the device, which `synchronize` completes."""
        ...

    def download(self, host: int, address: int, size: int, stream: int) -> None:
        """Start to copy bytes from the device, which `synchronize` completes."""
        ...

    def synchronize(self, stream: int) -> None:
        """Wait until all that was launched in the stream is complete."""
        ...

    def copy(self, address: int, source: int, size: int, stream: int) -> None:
        """Copy bytes within the device."""
        ...

    def time(self, work: Callable[[], object]) -> float:
        """Seconds between the device's begin and end of what some work launches in the default stream."""
        ...

    def tensor_map(self, tensor_map: TensorMap, address: int) -> bytes:
        """The map of a tensor at an address, in the form that kernels are passed.

        Raises:
            TlxError: The device refuses it.
        """
        ...

    def launch(self, launch: Launch, blocks: int, arguments: Any, stream: int) -> None:
        """Launch some blocks of a kernel.

        Args:
            launch: The launch.
            blocks: The number of blocks, which is not 0.
            arguments: An array of pointers to the arguments, of ctypes.
            stream: The stream.

        Raises:
            TlxError: The device refuses it.
        """
        ...

    def is_capturing(self, stream: int) -> bool:
        """Whether a stream is being captured, by this or another library."""
        ...

    def capture(self, work: Callable[[int], None]) -> Callable[[int], None]:
        """Record what a function does in the order of the stream that it is given.

        Returns:
            What does it again, in the order of a stream.

        Raises:
            TlxError: The device cannot record it.
        """
        ...


class Device(Protocol):
    """A device of this machine.

    Attributes:
        processor: Its processor, by LLVM's name.
        library_name: What array libraries such as PyTorch call devices of this kind.
    """

    processor: str
    library_name: str

    @property
    def name(self) -> str:
        """Its maker's name for it."""
        ...

    def check_processor(self, processor: str) -> None:
        """Check that code for a processor, given by LLVM's name, runs on the device.

        Raises:
            UsageError: It does not.
        """
        ...

    def load(self, assembly: str, launches: Sequence[FunctionLaunches]) -> DeviceCode:
        """Load code in the form that `--emit=asm` writes.

        Raises:
            TlxError: The device refuses it.
        """
        ...


@dataclass(frozen=True, slots=True)
class BlockShape:
    """How a block computes its tile of a product.

    Attributes:
        rows, columns: The tile of C.
        depth: Elements of K in a stage of shared memory.
        warp_rows, warp_columns: The part of the tile that a warp computes.
        stages: Stages of shared memory: others are being copied while one is multiplied.
        min_resident_blocks: Blocks that a multiprocessor runs at once at least, which limits their registers.
    """

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int
    min_resident_blocks: int = 1

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.rows // self.warp_rows * (self.columns // self.warp_columns)


@dataclass(frozen=True, slots=True)
class FragmentProduct:
    """A product of fragments.

    Attributes:
        lhs, rhs: Element type and signs of the operands.
        accumulator: Element type of the sums.
        rows, columns, depth: Extents: rows x depth by depth x columns.
        fmas_per_cycle: Products of numbers in a cycle of a multiprocessor.
        shapes: Tiles of blocks.
        multiply: Emits the product: (builder, sums, registers of A, registers of B) -> sums.
    """

    lhs: tuple[str, Sign]
    rhs: tuple[str, Sign]
    accumulator: str
    rows: int
    columns: int
    depth: int
    fmas_per_cycle: int
    shapes: tuple[BlockShape, ...]
    multiply: Callable[[Builder, Sequence[Value], Sequence[Value], Sequence[Value]], list[Value]]


@dataclass(frozen=True, slots=True)
class SharedOperand:
    """A part of an operand in shared memory, for one step along K.

    Attributes:
        address: Where the parts for all steps begin.
        offset: Bytes from there to its first chunk.
        k_lines: Whether lines follow each other along K.
        box_bytes: Bytes from a box to the next, where there are several.
        line_bytes: Bytes of a line of a box; the chunks of eight lines are swizzled.
    """

    address: Value
    offset: int
    k_lines: bool
    box_bytes: int
    line_bytes: int


class GroupOperations(Protocol):
    """Products that a group of four warps starts together, and that read their operands from shared memory."""

    def fence(self, b: Builder) -> None:
        """Make what the thread has written to shared memory visible to products."""
        ...

    def multiply(
        self,
        b: Builder,
        product: GroupProduct,
        acc: Sequence[Value],
        lhs: Sequence[SharedOperand],
        rhs: Sequence[SharedOperand],
        columns: int,
    ) -> list[Value]:
        """Start the products of some steps along K; returns the sums, which are not complete yet."""
        ...

    def multiply_from_registers(
        self,
        b: Builder,
        product: GroupProduct,
        acc: Sequence[Value],
        lhs: Sequence[Sequence[Value]],
        rhs: Sequence[SharedOperand],
        columns: int,
    ) -> list[Value]:
        """The same with left operands in registers, four for each step: of a warp's 16 rows, as those of fragments."""
        ...

    def wait(self, b: Builder) -> None:
        """Wait for all products but those of the last `multiply`."""
        ...

    def complete(self, b: Builder, acc: Sequence[Value]) -> list[Value]:
        """The sums, when all products are complete."""
        ...


@dataclass(frozen=True, slots=True)
class GroupProduct:
    """A product of a group of warps: rows x depth by depth x as many columns as the tile of the block has.

    Attributes:
        lhs, rhs: Element type and signs of the operands.
        accumulator: Element type of the sums.
        rows, depth: Extents.
        fmas_per_cycle: Products of numbers in a cycle of a multiprocessor.
        shapes: Tiles of blocks; a warp's part is 16 rows and all columns.
        operations: Emits it.
    """

    lhs: tuple[str, Sign]
    rhs: tuple[str, Sign]
    accumulator: str
    rows: int
    depth: int
    fmas_per_cycle: int
    shapes: tuple[BlockShape, ...]
    operations: GroupOperations


@dataclass(frozen=True, slots=True)
class MultiprocessorCosts:
    """Cycles and rates of a multiprocessor, by which tiles of products are chosen.

    Attributes:
        scalar_fmas_per_cycle: Products of numbers in a cycle, if each thread multiplies its own.
        copied_bytes_per_cycle: Bytes in a cycle from global to shared memory.
        shared_bytes_per_cycle: Bytes in a cycle from shared memory.
        memory_bytes_per_cycle: Bytes in a cycle from or to memory, its share of all multiprocessors'.
        block_cycles: Cycles of a block besides its stages: the first copies, and the epilogue.
        serial_start_share: The share of a block's start that takes time besides the other blocks of the multiprocessor.
        kernel_cycles: Cycles between two kernels.
        exposed_share: The share of the faster of copies and products that takes time besides the other.
        exposed_share_at_once: That share where the copies of all stages start before the first one is multiplied.
        exposed_share_of_maps: That share where a thread of its own copies by tensor maps.
        tensor_map_cycles: Cycles of a block before copies by tensor maps arrive, more than before others do.
    """

    scalar_fmas_per_cycle: int
    copied_bytes_per_cycle: int
    shared_bytes_per_cycle: int
    memory_bytes_per_cycle: int
    block_cycles: int
    kernel_cycles: int
    serial_start_share: float
    exposed_share: float
    exposed_share_at_once: float
    exposed_share_of_maps: float
    tensor_map_cycles: int = 0


@dataclass(frozen=True, slots=True)
class GridUnit:
    """The grid of a target.

    Attributes:
        operations: Emits its operations.
        calling_convention: Calling convention of kernels, as a keyword of LLVM's assembly.
        warp_threads: Threads of a warp.
        block_threads: Threads of a block of kernels without products.
        max_block_threads: Threads that a block may have.
        multiprocessors: Multiprocessors of the machine; a grid of fewer blocks leaves some idle.
        max_shared_bytes: Bytes of shared memory that a block may have.
        reserved_shared_bytes: Bytes of shared memory that each block takes besides its own.
        registers: Registers of a multiprocessor, of 32 bits.
        max_thread_registers: Registers that a thread may have.
        sector_bytes: Bytes of global memory that are read together, if any of them is.
        raster_rows: Rows of tiles that consecutive blocks compute column by column, so that operands stay in L2.
        products: Products of fragments and of groups, the preferred ones first.
        tf32_products: Products of floats whose last 13 bits are ignored, preferred where the options allow it.
        fp8_products: Products of 8-bit floats with sums of fewer bits than floats have, likewise.
        costs: Costs of products.
        scalar_shapes: Tiles of other products; `warp_rows` x `warp_columns` is a thread's part.
        find_device: Finds the device of this machine that runs kernels, or raises UsageError.
        tensor_copies: Emits copies of boxes of tensors, if there are such.
    """

    operations: GridOperations
    calling_convention: str
    warp_threads: int
    block_threads: int
    max_block_threads: int
    multiprocessors: int
    max_shared_bytes: int
    reserved_shared_bytes: int
    registers: int
    max_thread_registers: int
    sector_bytes: int
    raster_rows: int
    products: tuple[FragmentProduct | GroupProduct, ...]
    tf32_products: tuple[FragmentProduct | GroupProduct, ...]
    costs: MultiprocessorCosts
    scalar_shapes: tuple[BlockShape, ...]
    find_device: Callable[[], Device]
    tensor_copies: TensorCopies | None = None
    fp8_products: tuple[FragmentProduct | GroupProduct, ...] = ()
