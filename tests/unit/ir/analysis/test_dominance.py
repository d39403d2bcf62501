"""Control flow: on random graphs, the analyses agree with a naive search."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tlx.ir.control_flow import ControlFlow, natural_loops
from tlx.ir.functions import Function
from tlx.ir.parser.module import parse_fully

Graph = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn, most: int = 9) -> Graph:
    """Successors of each block; block 0 is the entry, which has no predecessors, as LLVM demands."""
    count = draw(st.integers(1, most))
    others = st.lists(st.integers(1, count - 1), max_size=3) if count > 1 else st.just([])
    return [draw(others) for _ in range(count)]


def function_of(graph: Graph, fillers: int = 0) -> Function:
    """A function with that control flow; each block begins with `fillers` instructions."""
    blocks: list[str] = []
    for number, targets in enumerate(graph):
        lines = [f"b{number}:"] + [f"  %x{number}.{i} = add i32 %a, {i}" for i in range(fillers)]
        match targets:
            case []:
                lines.append("  ret void")
            case [only]:
                lines.append(f"  br label %b{only}")
            case [first, second]:
                lines.append(f"  br i1 undef, label %b{first}, label %b{second}")
            case _:
                first, *more = targets
                cases = " ".join(f"i32 {i}, label %b{target}" for i, target in enumerate(more))
                lines.append(f"  switch i32 %a, label %b{first} [ {cases} ]")
        blocks.append("\n".join(lines))
    text = "define void @f(i32 %a) {\n" + "\n".join(blocks) + "\n}\n"
    return parse_fully(text).functions[0]


def reached(graph: Graph, starts: list[int], without: int = -1) -> set[int]:
    """Blocks on ways from `starts`, those included, that do not enter block `without`."""
    seen: set[int] = set()
    stack = [s for s in starts if s != without]
    while stack:
        block = stack.pop()
        if block not in seen:
            seen.add(block)
            stack.extend(t for t in graph[block] if t != without)
    return seen


def dominated(graph: Graph, by: int) -> set[int]:
    """Reachable blocks that cannot be reached without block `by`."""
    return reached(graph, [0]) - reached(graph, [0], without=by)


@given(graphs())
def test_dominators(graph: Graph) -> None:
    flow = ControlFlow(function_of(graph))
    alive = reached(graph, [0])
    assert {int(name[1:]) for name in flow.order} == alive
    for first in range(len(graph)):
        below = dominated(graph, first)
        for second in range(len(graph)):
            expected = second in below or second not in alive or first == second
            assert flow.dominates(f"b{first}", f"b{second}") == expected


@given(graphs())
def test_immediate_dominators_are_the_nearest(graph: Graph) -> None:
    flow = ControlFlow(function_of(graph))
    for name, dominator in flow.dominators.items():
        if name == "b0":
            continue
        above = [d for d in flow.order if d != name and flow.dominates(d, name)]
        assert dominator in above
        assert all(flow.dominates(d, dominator) for d in above)


@given(graphs())
def test_order_and_predecessors(graph: Graph) -> None:
    flow = ControlFlow(function_of(graph))
    position = {name: index for index, name in enumerate(flow.order)}
    for name in flow.order[1:]:
        assert position[flow.dominators[name]] < position[name]
    for block in range(len(graph)):
        expected = [f"b{p}" for p in range(len(graph)) if block in graph[p]]
        assert flow.predecessors[f"b{block}"] == expected


@given(graphs())
def test_natural_loops(graph: Graph) -> None:
    alive = reached(graph, [0])
    bodies: dict[int, set[int]] = {}
    backward: Graph = [[p for p in range(len(graph)) if b in graph[p]] for b in range(len(graph))]
    for block in alive:
        for header in graph[block]:
            if block in dominated(graph, header):
                body = {header} | (reached(backward, [block], without=header) & alive)
                bodies.setdefault(header, set()).update(body)
    actual = natural_loops(ControlFlow(function_of(graph)))
    assert {int(lp.header[1:]): {int(b[1:]) for b in lp.blocks} for lp in actual} == bodies
    sizes = [len(lp.blocks) for lp in actual]
    assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=60)
@given(graphs(6), st.data())
def test_between(graph: Graph, data: st.DataObject) -> None:
    """By brute force over single instructions: what lies on a way from start to end that does not pass start again."""
    fillers = 2
    function = function_of(graph, fillers)
    flow = ControlFlow(function)
    size = fillers + 1
    alive = sorted(reached(graph, [0]))
    first = data.draw(st.sampled_from(alive))
    last = data.draw(st.sampled_from(sorted(dominated(graph, first))))
    i, j = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    steps: Graph = [
        [t * size for t in graph[n // size]] if n % size == size - 1 else [n + 1] for n in range(len(graph) * size)
    ]
    start, end = first * size + i, last * size + j
    if first == last and j <= i and end not in reached(steps, steps[start]):
        return
    backward: Graph = [[p for p in range(len(steps)) if n in steps[p]] for n in range(len(steps))]
    forward = reached(steps, steps[start], without=start)
    expected = forward & reached(backward, backward[end], without=start)
    numbers = {id(x): n for n, x in enumerate(x for b in function.blocks for x in b.instructions)}
    actual = flow.between((f"b{first}", i), (f"b{last}", j))
    assert {numbers[id(x)] for x in actual} == expected


def test_deep_graphs_need_no_deep_stack() -> None:
    graph = [[n + 1] for n in range(3000)] + [[1]]
    flow = ControlFlow(function_of(graph))
    assert flow.dominates("b1", "b2999")
    (loop,) = natural_loops(flow)
    assert len(loop.blocks) == 3000
