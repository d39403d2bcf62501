"""Random tensor programs, checked at every stage and as machine code: `tlx fuzz`.

generation/      random programs and their meaning, drawn from a seed (generation-based fuzzing)
graphs/          random graphs of tensors, compared with JAX: `tlx fuzz --graphs`
options          random options of a lowering: processor, features, knobs
check            evaluates a program and each stage's output, and runs the machine code on guarded memory
worker           the process that checks programs, which may crash
worker_pool      starts such processes; the outcomes of their checks
shrinking        finds a simpler program that fails in the same way
log              a log of the programs that have been checked: `tlx fuzz --resume`
campaign         has workers check random programs, counts outcomes, and writes failures to files
mutation         corrupts texts and bitcode (mutation-based fuzzing): `tlx fuzz --malformed`
mutation_worker  feeds corrupted inputs to the `tlx` commands, in a separate process
"""
