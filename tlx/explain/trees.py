"""A picture of the tree that a kernel computes: its operands above, its results below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.explain.html import Markup, tag
from tlx.explain.svg import picture, text
from tlx.lower.to_tiles.expression import (
    Expression,
    InstructionNode,
    MatrixLeaf,
    MatrixView,
    ScalarLeaf,
    SplatLeaf,
    UnaryNode,
)
from tlx.lower.to_tiles.kernels import KernelFacts
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, LineShuffle, Reduction, RowFusion
from tlx.lower.to_tiles.select.recipe import Recipe

_BOX: Final = (132, 38)
_GAP: Final = (14, 30)
_MOST_NODES: Final = 48
_MOST_CHARACTERS: Final = 20


@dataclass(eq=False)
class TreeNode:
    """A node of a drawn tree.

    Attributes:
        label: Its first line.
        detail: Its second line; may be empty.
        kind: `memory`, `number`, `packing`, `product`, `operation`, `reduction` or `store`.
        operands: The nodes it reads.
    """

    label: str
    detail: str
    kind: str
    operands: list[TreeNode] = field(default_factory=list["TreeNode"])


def tree(facts: KernelFacts) -> Markup:
    """The tree that a kernel computes, its operands above and its results below."""
    roots = _roots(facts)
    layers = _layers(roots)
    count = sum(map(len, layers))
    if count > _MOST_NODES:
        return tag("p", f"The tree has {count} nodes, too many to draw.", class_="note")
    width = max(len(layer) for layer in layers) * (_BOX[0] + _GAP[0]) + _GAP[0]
    height = len(layers) * (_BOX[1] + _GAP[1])
    places: dict[int, tuple[float, float]] = {}
    for depth, layer in enumerate(layers):
        step = width / (len(layer) + 1)
        order = sorted(layer, key=lambda node: _centre(node, places, width))
        room = max(step, _BOX[0] + _GAP[0])
        start = width / 2 - room * (len(layer) - 1) / 2
        for number, node in enumerate(order):
            places[id(node)] = (start + room * number, depth * (_BOX[1] + _GAP[1]) + _BOX[1] / 2 + 4)
    depth = {id(node): number for number, layer in enumerate(layers) for node in layer}
    pairs = [(operand, node) for layer in layers for node in layer for operand in node.operands]
    skips = [pair for pair in pairs if depth[id(pair[1])] - depth[id(pair[0])] > 1]
    right = max(x for x, _ in places.values()) + _BOX[0] / 2
    edges = [_edge(places[id(a)], places[id(b)]) for a, b in pairs if (a, b) not in skips]
    edges += [_detour(places[id(a)], places[id(b)], right + 12 * (1 + n)) for n, (a, b) in enumerate(skips)]
    width = max(width, right + 12 * (len(skips) + 1))
    boxes = [_box(node, *places[id(node)]) for layer in layers for node in layer]
    words = ", ".join(node.label for layer in layers for node in layer)
    return picture(width, height, f"Tree of the kernel: {words}", *edges, *boxes, class_="tree", is_fixed=True)


def _centre(node: TreeNode, places: dict[int, tuple[float, float]], width: float) -> float:
    known = [places[id(operand)][0] for operand in node.operands if id(operand) in places]
    return sum(known) / len(known) if known else width / 2


def _layers(roots: Sequence[TreeNode]) -> list[list[TreeNode]]:
    """The nodes by their distance from the operands; an operand is right above its first user."""
    depth: dict[int, int] = {}
    nodes: dict[int, TreeNode] = {}

    def visit(node: TreeNode) -> int:
        if id(node) not in depth:
            depth[id(node)] = 1 + max((visit(operand) for operand in node.operands), default=-1)
            nodes[id(node)] = node
        return depth[id(node)]

    for root in roots:
        visit(root)
    for node in nodes.values():
        for operand in node.operands:
            if not operand.operands:
                users = [depth[id(n)] for n in nodes.values() if operand in n.operands]
                depth[id(operand)] = min(users) - 1
    layers: list[list[TreeNode]] = [[] for _ in range(max(depth.values()) + 1)]
    for key, node in nodes.items():
        layers[depth[key]].append(node)
    return [layer for layer in layers if layer]


def _edge(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    (x, y), (to_x, to_y) = start, end
    y, to_y = y + _BOX[1] / 2, to_y - _BOX[1] / 2
    bend = (y + to_y) / 2
    curve = f"M{x:.1f} {y:.1f}C{x:.1f} {bend:.1f} {to_x:.1f} {bend:.1f} {to_x:.1f} {to_y:.1f}"
    return tag("path", d=curve, class_="edge")


def _detour(start: tuple[float, float], end: tuple[float, float], right: float) -> Markup:
    """An edge past other layers: out of the right side of a box, down, and into the right side of another."""
    (x, y), (to_x, to_y) = start, end
    x, to_x = x + _BOX[0] / 2, to_x + _BOX[0] / 2
    curve = (
        f"M{x:.1f} {y:.1f}H{right - 8:.1f}Q{right:.1f} {y:.1f} {right:.1f} {y + 8:.1f}"
        f"V{to_y - 8:.1f}Q{right:.1f} {to_y:.1f} {right - 8:.1f} {to_y:.1f}H{to_x:.1f}"
    )
    return tag("path", d=curve, class_="edge")


def _box(node: TreeNode, x: float, y: float) -> Markup:
    width, height = _BOX
    rect = tag("rect", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7, class_=f"node {node.kind}")
    label = text(x, y - 3 if node.detail else y + 4, _cut(node.label), "label")
    detail = [text(x, y + 11, _cut(node.detail), "detail")] if node.detail else []
    return tag("g", tag("title", f"{node.label} {node.detail}"), rect, label, *detail)


def _cut(words: str) -> str:
    return words if len(words) <= _MOST_CHARACTERS else f"{words[: _MOST_CHARACTERS - 1]}…"


def _roots(facts: KernelFacts) -> list[TreeNode]:
    problem = facts.problem
    if isinstance(problem, Gemm):
        return [_product(problem, facts.recipe)]
    if isinstance(problem, Copy):
        is_transposed = problem.source.is_row_major != problem.destination.is_row_major
        source = TreeNode("load", problem.source.layout, "memory")
        moved = [TreeNode("transpose", "", "operation", [source])] if is_transposed else [source]
        return [TreeNode("store", problem.destination.layout, "store", moved)]
    if isinstance(problem, LineShuffle):
        lines = [TreeNode("load", str(line), "memory") for line in problem.lines]
        return [TreeNode("store", str(problem.destination), "store", [TreeNode("shuffle", "", "operation", lines)])]
    if isinstance(problem, RowFusion):
        return _fused_rows(problem)
    return [_stored(problem, {})]


def _product(gemm: Gemm, recipe: Recipe | None) -> TreeNode:
    a, b = TreeNode("load A", gemm.a.layout, "memory"), TreeNode("load B", gemm.b.layout, "memory")
    terms = f"sum of {len(gemm.term_offsets)}" if len(gemm.term_offsets) > 1 else f"{gemm.m}x{gemm.n}x{gemm.k}"
    operands = [a, b]
    if recipe is not None:
        if recipe.packing.a:
            operands[0] = TreeNode("pack A", str(recipe.mma.operand_a), "packing", [a])
        if recipe.packing.prepacked_b:
            b.label, b.detail = "panels of B", "packed before"
        elif recipe.packing.b:
            operands[1] = TreeNode("pack B", str(recipe.mma.operand_b), "packing", [b])
    if gemm.acc is not None:
        operands.append(TreeNode("load sums", gemm.acc.layout, "memory"))
    value = TreeNode("matmul", terms, "product", operands)
    if gemm.epilogue is not None:
        value = _expression(gemm.epilogue, {}, value)
    if gemm.reduction is not None:
        value = TreeNode(
            f"reduce.{gemm.reduction[0]}", "of rows" if gemm.reduction[1] else "of columns", "reduction", [value]
        )
    return TreeNode("store C", gemm.c.layout, "store", [value])


def _expression(
    value: Expression, leaves: dict[tuple[int, MatrixView], TreeNode], product: TreeNode | None = None
) -> TreeNode:
    """The nodes of an expression; equal leaves of several expressions are one node."""
    nodes: list[TreeNode] = []
    for node in value.nodes:
        if isinstance(node, MatrixLeaf):
            key = node.pointer, node.view
            if key not in leaves:
                leaves[key] = TreeNode("load", node.view.layout, "memory")
            nodes.append(leaves[key])
        elif isinstance(node, ScalarLeaf):
            nodes.append(TreeNode("scalar", str(node.element), "number"))
        elif isinstance(node, SplatLeaf):
            nodes.append(TreeNode(str(node.value), str(node.element), "number"))
        elif isinstance(node, InstructionNode | UnaryNode):
            title = node.operation.title if isinstance(node, InstructionNode) else node.name
            operands = [nodes[number] for number in node.operands]
            nodes.append(TreeNode(title.removeprefix("llvm."), str(node.element), "operation", operands))
        else:
            nodes.append(product or TreeNode("row of results", str(node.element), "number"))
    return nodes[-1]


def _stored(problem: Elementwise | Reduction, leaves: dict[tuple[int, MatrixView], TreeNode]) -> TreeNode:
    value = _expression(problem.value, leaves)
    if isinstance(problem, Reduction):
        along = "to one row" if problem.axis == 0 else "to one column"
        value = TreeNode(f"reduce.{problem.operation}", along, "reduction", [value])
        if problem.epilogue is not None:
            value = _expression(problem.epilogue, {}, value)
    return TreeNode("store", problem.destination.layout, "store", [value])


def _fused_rows(problem: RowFusion) -> list[TreeNode]:
    """The trees of a row fusion, joined where one reads what another has written."""
    results: dict[int, TreeNode] = {}
    for part in problem.parts:
        leaves: dict[tuple[int, MatrixView], TreeNode] = {}
        for leaf in part.problem.value.leaves():
            pointer = part.pointers[1 + leaf.pointer] if 1 + leaf.pointer < len(part.pointers) else -1
            if pointer not in results:
                results[pointer] = TreeNode("load", leaf.view.layout, "memory")
            leaves[leaf.pointer, leaf.view] = results[pointer]
        root = _stored(part.problem, leaves)
        if part.pointers[0] in problem.scratch_pointers:
            root.label = "keep in cache"
        results[part.pointers[0]] = root
    read = {id(operand) for node in results.values() for operand in _below(node)}
    return [node for node in results.values() if id(node) not in read]


def _below(node: TreeNode) -> list[TreeNode]:
    found: list[TreeNode] = []
    pending = list(node.operands)
    while pending:
        current = pending.pop()
        found.append(current)
        pending += current.operands
    return found
