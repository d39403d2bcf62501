"""`attributes {unroll=...}` of a `for`, as metadata of the loop: LLVM is asked to unroll it, or not to.

unroll=true      br i1 %again, label %for, label %endfor, !llvm.loop !0
                 !0 = distinct !{!0, !1}
                 !1 = !{!"llvm.loop.unroll.enable"}
unroll=false     !1 = !{!"llvm.loop.unroll.disable"}
unroll=4         !1 = !{!"llvm.loop.unroll.count", i32 4}
"""

from __future__ import annotations

import re

from tlx.frontends.tensor_language.ast.mixed import For
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.module import Block, Raw
from tlx.ir.values import Value


def branch_back(e: Emitter, i: For, again: Value, body: Block, end: Block) -> None:
    """The branch at the end of a loop."""
    e.b.branch_if(again, body, end)
    wish = _wish(i)
    if wish is not None:
        branch = e.b.block.instructions[-1]
        branch.trailer = f", !llvm.loop !{_loop_node(e, wish)}"
        branch.text += branch.trailer


def _wish(i: For) -> str | None:
    attribute = i.attributes.get("unroll")
    if attribute is None:
        return None
    value = attribute.value
    if isinstance(value, bool):
        return f'!"llvm.loop.unroll.{"enable" if value else "disable"}"'
    assert isinstance(value, int), "the checker lets it be nothing else"
    return f'!"llvm.loop.unroll.count", i32 {value}'


def _loop_node(e: Emitter, wish: str) -> int:
    """The number of a new node for a loop."""
    module = e.b.module
    number = len(re.findall(r"(?m)^!\d+ = ", module.raw_text()))
    module.items.append(Raw(f"\n!{number} = distinct !{{!{number}, !{number + 1}}}\n!{number + 1} = !{{{wish}}}\n"))
    return number
