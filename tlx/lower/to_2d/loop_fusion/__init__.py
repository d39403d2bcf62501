"""Loop fusion: successive operations become one loop over parts of their results.

The results of attention's products are large: for 12 heads of 512 rows, the scores are 12 MiB of float, and softmax
reads and writes them several times. One head's scores are 1 MiB; those of 64 rows of a head, 128 KiB::

    s = q k'     for all heads                       for each head
    p = softmax(s) for all heads           ->          for 64 rows of q
    o = p v      for all heads                           s = q k';  p = softmax(s);  o = p v

The loops are in the program before anything else is decided, so that all later decisions see the extents of one
iteration: temporaries have the size of a part. `splits` says how parts of results depend on parts of operands, `groups`
which operations share a loop, `legality` whether they can be moved to one place, `profit` whether that pays, and `emit`
writes the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set as AbstractSet
from typing import Final

from tlx.diagnostics import size_text
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import tensor_bytes
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts
from tlx.lower.to_2d.analysis.tensor_operations import PRODUCTS, STAGE, operation_title
from tlx.lower.to_2d.decisions import find_live_results
from tlx.lower.to_2d.fusion import FusionGroups
from tlx.lower.to_2d.loop_fusion.emit import emit_loops
from tlx.lower.to_2d.loop_fusion.groups import BlockOperations
from tlx.lower.to_2d.loop_fusion.profit import FusedLoop, find_loops

_MOST_ROUNDS: Final = 4


def fuse_loops(facts: Facts, remarks: Remarks) -> Facts:
    """Compute operations of a function in one loop where their results exceed the caches.

    Args:
        facts: The analyses of the function.
        remarks: Receives a remark for each loop.

    Returns:
        The analyses of the function as it is now.
    """
    bodies: set[str] = set()
    searched: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        loops = _find(facts, bodies, searched, remarks)
        if not loops:
            break
        for loop in reversed(loops):
            _remark(loop, remarks)
        bodies.update(emit_loops(facts, loops))
        facts = Facts(facts.module, facts.function, facts.target, facts.buffers)
    return facts


def _find(facts: Facts, bodies: AbstractSet[str], searched: set[str], remarks: Remarks) -> list[FusedLoop]:
    """The loops to make that do not depend on each other, in program order.

    Args:
        facts: The analyses of the function.
        bodies: The blocks of the loops that have been made.
        searched: Names of the blocks that have no other loops; added to.
        remarks: Receives what keeps operations out of loops.
    """
    ops = facts.tensors.ops
    has_products = any(op.intrinsic.name in PRODUCTS for op in ops)
    limit = facts.target.block_costs.loop_fusion.min_intermediate_caches * facts.target.caches.l2
    is_large = any(op.result is not None and tensor_bytes(op.result) > limit for op in ops)
    if not has_products or not (is_large or bodies):
        return []
    groups = FusionGroups.of(facts)
    live = find_live_results(facts, groups)
    ops_by_block: dict[str, list[TensorOp]] = defaultdict(list)
    for op in ops:
        ops_by_block[facts.positions[id(op.instruction)][0]].append(op)
    found: list[FusedLoop] = []
    for block in facts.function.blocks:
        if block.name in searched:
            continue
        operations = BlockOperations(facts, groups, live, block.name, ops_by_block[block.name])
        loops = find_loops(operations, remarks, is_nested=block.name in bodies)
        made = len(found)
        for loop in loops:
            if all(map(loop.is_disjoint_from, found)):
                found.append(loop)
        if len(found) == made:
            searched.add(block.name)
        found[made:] = sorted(found[made:], key=lambda loop: loop.placement.range)
    return found


def _remark(loop: FusedLoop, remarks: Remarks) -> None:
    members = sorted(loop.group.members, key=lambda op: loop.group.block.position(op.instruction))
    titles = [operation_title(op) for op in members if op.pointer is None]
    size = loop.group.internal[0]
    message = (
        f"fused {', '.join(titles)} into one loop of {loop.trips} iterations: "
        f"of {size_text(size)} between them, {size_text(size // loop.trips)} are in memory at a time"
    )
    remarks.add("applied", STAGE, message, members[0].instruction.span)
