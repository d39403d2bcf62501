"""Control flow: conditions, loops, parallel regions and barriers.

divergence      which names differ between the work-items of a subgroup, before anything is written
uniform         `if` and `for` where all work-items go the same way: branches, phis, unrolling
divergent       `if` and `for` where they may go different ways: masks
parallel        `parallel`: loops over subgroups, cut at barriers by loop fission
foreach         `foreach` and `foreach_tile`
"""
