"""The atomic forms of BLAS instructions: each element is added or stored atomically, in no order.

    beta 1     output += alpha * value      atomically, old values are seen by others
    beta 0     output  = alpha * value

A narrow float is rounded once, after the addition.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.frontends.tensor_language.emit import atomics
from tlx.frontends.tensor_language.emit.addresses import address_of
from tlx.frontends.tensor_language.emit.blas_epilogue import Epilogue
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.values import Parts
from tlx.ir.values import Value


def write_atomically(e: Emitter, epilogue: Epilogue, value: Parts, indices: Sequence[Value]) -> None:
    """Add a value in the epilogue's type to an element, or store it."""
    element = epilogue.out.type.element
    address = address_of(e, epilogue.out, indices)
    if epilogue.beta is not None:
        atomics.store(e, address, epilogue.out.type, convert(e, value, epilogue.type, element))
        return
    parts = value if element.is_narrow_float else convert(e, value, epilogue.type, element)
    atomics.update(e, "add", address, epilogue.out.type, parts)
