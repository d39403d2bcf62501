"""Control flow: conditions, loops, parallel regions and barriers.

divergence      which names differ between the work-items of a subgroup, computed before emission
sequential      `if` and `for`: with branches where the condition is uniform, with masks where it varies
parallel        `parallel`, split at barriers by loop fission; `foreach` and `foreach_tile`
"""
