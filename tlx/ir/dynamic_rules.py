"""Rules of shape, layout, padding and pitches, as far as these are known before the program runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tlx.diagnostics import Note
from tlx.ir.fold import Folder
from tlx.ir.tensor_calls import Call
from tlx.ir.types import VectorType
from tlx.ir.values import Local
from tlx.types import vector_text

if TYPE_CHECKING:
    from tlx.ir.dynamic import DynamicTensor
    from tlx.ir.tensors import Tensor

Known = Sequence[int | None]


def check_dims(call: Call, folder: Folder) -> tuple[int, ...]:
    """Check shape, layout and padding of a tensor; gives its layout.

    Raises:
        VerifyError: The layout is no constant permutation, or known extents and padding are wrong.
    """
    layout = _layout(call, folder)
    shape = known_numbers(call, "shape", folder)
    padding = known_numbers(call, "padding", folder)
    rank = len(shape)
    if len(layout) != rank or len(padding) != rank:
        message = f"shape has {rank} entries, layout {len(layout)} and padding {len(padding)}: "
        name = "layout" if len(layout) != rank else "padding"
        raise call.error(message + "a tensor needs one of each per dimension", call.named(name))
    if sorted(layout) != list(range(rank)):
        message = f"layout {vector_text(layout)} is no permutation of 0 to {rank - 1}"
        raise call.error(message, call.named("layout"))
    for k, (extent, pad) in enumerate(zip(shape, padding, strict=True)):
        _check_dimension(call, k, extent, pad)
    return layout


def _check_dimension(call: Call, k: int, extent: int | None, pad: int | None) -> None:
    if extent is not None and extent <= 0:
        message = f"shape has extent {extent} in dimension {k}: extents are at least 1"
        raise call.error(message, call.named("shape"))
    if pad is not None and (pad < 0 or (extent is not None and pad >= extent)):
        most = "" if extent is None else f" to {extent - 1}"
        raise call.error(f"padding {pad} of dimension {k} is outside 0{most}", call.named("padding"))


def _layout(call: Call, folder: Folder) -> tuple[int, ...]:
    value = call.named("layout")
    assert value is not None
    layout = folder.ints(value)
    if layout is None:
        reason = f"{value} is not" if isinstance(value, Local) else f"got {value}"
        raise call.error(f"operand layout must be a constant in every entry; {reason}", value)
    return layout


def known_numbers(call: Call, name: str, folder: Folder) -> Known:
    """The entries of an operand; None for those that are known only at run time.

    Raises:
        VerifyError: It is a constant with an entry that is no number.
    """
    value = call.named(name)
    assert value is not None
    if not isinstance(value, Local) and folder.ints(value) is None:
        raise call.error(f"operand {name} needs a number in every entry; got {value}", value)
    numbers = folder.known(value)
    count = value.type.count if isinstance(value.type, VectorType) else 1
    return numbers if numbers is not None else (None,) * count


def check_pitches(call: Call, folder: Folder) -> None:
    """Check the pitches of a load: one a dimension, none known to be negative.

    Raises:
        VerifyError: They are wrong.
    """
    shape = call.named("shape")
    assert shape is not None
    assert isinstance(shape.type, VectorType)
    _check_strides(call, shape.type.count, known_numbers(call, "strides", folder))


def check_store_pitches(call: Call, tensor: Tensor | DynamicTensor, notes: Sequence[Note], folder: Folder) -> None:
    """Check the pitches of a store: one a dimension, and none known to make rows overlap.

    Raises:
        VerifyError: They are wrong.
    """
    pitches = known_numbers(call, "strides", folder)
    extents = _known_extents(tensor, folder)
    _check_strides(call, len(extents), pitches)
    for k, (pitch, extent) in enumerate(zip(pitches, extents, strict=True)):
        if k and pitch and extent is not None and pitch < extent:
            message = f"stride {pitch} of dimension {k} is less than its extent {extent}: rows would overlap"
            raise call.error(message, call.named("strides"), notes)


def _check_strides(call: Call, rank: int, pitches: Known) -> None:
    if len(pitches) != rank:
        raise call.error(f"strides has {len(pitches)} entries, shape has {rank}", call.named("strides"))
    for k, pitch in enumerate(pitches):
        if pitch is not None and pitch < 0:
            raise call.error(f"stride {pitch} of dimension {k} is negative", call.named("strides"))


def _known_extents(tensor: Tensor | DynamicTensor, folder: Folder) -> Known:
    """Positions of each memory dimension that hold data."""
    from tlx.ir.dynamic import DynamicTensor

    if not isinstance(tensor, DynamicTensor):
        return tensor.type.data_shape
    unknown = (None,) * tensor.rank
    shape, padding = folder.known(tensor.shape) or unknown, folder.known(tensor.padding) or unknown
    return [None if s is None or p is None else s - p for s, p in zip(shape, padding, strict=True)]
