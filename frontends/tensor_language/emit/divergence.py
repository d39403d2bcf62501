"""Which names may differ between the work-items of a subgroup.

A result varies if an operand does, or if the instruction itself tells work-items apart: `subgroup_local_id`, a scan,
an atomic update in an SPMD region, the variables of `foreach`, the entries of `cooperative_matrix_apply`, a component
of a cooperative matrix. What leaves an `if` with a varying condition or a `for` with varying bounds varies. Reductions
over the subgroup and broadcasts give one value to all.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.ast.base import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.ast.collective import Foreach, ForeachTile, Parallel
from tlx.frontends.tensor_language.ast.mixed import AtomicUpdate, Builtin, For, If, Yield
from tlx.frontends.tensor_language.ast.spmd import (
    CooperativeMatrixApply,
    CooperativeMatrixExtract,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.types import CoopMatrixType


def varying_names(function: Function) -> frozenset[int]:
    """Ids of the defining `Name`s of what may vary."""
    analysis = _Analysis()
    analysis.region(function.body)
    return frozenset(analysis.found)


class _Analysis:
    def __init__(self) -> None:
        self.found: set[int] = set()
        self._scope: dict[str, bool] = {}
        self._in_spmd = False

    def region(self, region: Region) -> list[bool]:
        """Look at a region; gives which of its yields vary."""
        before = dict(self._scope)
        yields: list[bool] = []
        for instruction in region.instructions:
            if isinstance(instruction, Yield):
                yields = [self._varies(name) for name in instruction.values]
            else:
                self._instruction(instruction)
        self._scope = before
        return yields

    def _instruction(self, i: Instruction) -> None:
        match i:
            case If():
                self._if(i)
            case For():
                self._for(i)
            case Foreach():
                self._bind(i.variables, [True] * len(i.variables))
                self._spmd(i.body)
            case Parallel() | ForeachTile():
                self._spmd(i.body)
            case CooperativeMatrixApply():
                self._bind((i.row, i.column, i.value_name), [True] * 3)
                self.region(i.body)
                self._bind(i.results, [False])
            case SubgroupBroadcast():
                self._bind(i.results, [False])
            case SubgroupOperation():
                self._bind(i.results, [i.kind != "reduce"])
            case _:
                varies = self._tells_apart(i) or any(self._varies(name) for name in i.operands())
                for region in i.regions():
                    self.region(region)
                matrices = [isinstance(t.type, CoopMatrixType) for t in i.types]
                self._bind(i.results, [varies and not matrix for matrix in matrices])

    def _if(self, i: If) -> None:
        then = self.region(i.then)
        otherwise = self.region(i.otherwise) if i.otherwise is not None else []
        condition = self._varies(i.condition)
        matrices = [isinstance(t.type, CoopMatrixType) for t in i.types]
        triples = zip(then, otherwise, matrices, strict=False)
        self._bind(i.results, [(condition or a or b) and not m for a, b, m in triples])

    def _for(self, i: For) -> None:
        """Once a carried value varies in one iteration, it may vary in all: look again until nothing changes."""
        bounds = any(self._varies(name) for name in (i.start, i.stop, i.step) if name is not None)
        matrices = [isinstance(t.type, CoopMatrixType) for t in i.types]
        carried = [(bounds or self._varies(name)) and not m for name, m in zip(i.initial, matrices, strict=False)]
        while True:
            self._bind((i.variable, *i.carried), [bounds, *carried])
            yields = self.region(i.body)
            following = [(a or b) and not m for a, b, m in zip(carried, yields, matrices, strict=False)]
            if following == carried or not yields:
                break
            carried = following
        self._bind(i.results, carried)

    def _spmd(self, region: Region) -> None:
        self._in_spmd = True
        self.region(region)
        self._in_spmd = False

    def _tells_apart(self, i: Instruction) -> bool:
        if isinstance(i, AtomicUpdate):
            return self._in_spmd
        return isinstance(i, CooperativeMatrixExtract) or (isinstance(i, Builtin) and i.name == "subgroup_local_id")

    def _varies(self, name: Name) -> bool:
        return self._scope.get(name.text, False)

    def _bind(self, names: tuple[Name, ...], varies: list[bool]) -> None:
        for name, flag in zip(names, varies, strict=False):
            self._scope[name.text] = flag
            if flag:
                self.found.add(id(name))
