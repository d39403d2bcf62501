"""The atomic forms of BLAS instructions: each element is added or stored atomically, in no order.

    beta 1        output += alpha * value                    atomically, old values are seen by others
    beta 0        output  = alpha * value
    any other     output  = alpha * value + beta * output    a loop of compare-and-exchange; from version 1

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
    """Add what was computed, in the epilogue's type, to an element, or store it."""
    memory, type_ = epilogue.out.type, epilogue.type
    element = memory.element
    address = address_of(e, epilogue.out, indices)
    if epilogue.reads and epilogue.beta is not None:

        def updated(old: Value) -> Value:
            result = epilogue.apply(e, value, lambda: convert(e, (old,), element, type_), lambda part: part)
            return convert(e, result, type_, element)[0]

        atomics.replace_by(e, address, memory, updated)
        return
    scaled = epilogue.scaled(e, value, lambda part: part)
    if not epilogue.reads:
        atomics.store(e, address, memory, convert(e, scaled, type_, element))
        return
    parts = scaled if element.is_narrow_float else convert(e, scaled, type_, element)
    atomics.update(e, "add", address, memory, parts)
