"""Random tensor programs, checked at every stage and as machine code: `tlx fuzz`.

generation/      random programs with their meaning, drawn from a seed (generation-based fuzzing)
options          random options of a lowering: processor, features, knobs
check            evaluates a program and each stage's output, and runs the machine code on guarded memory
worker           checks programs in a process of its own, which may crash
campaign         feeds workers, watches them, counts outcomes, shrinks failing programs and writes them to files
command          what `tlx fuzz` does
mutation         damages texts and bitcode (mutation-based fuzzing): `tlx fuzz --malformed`
mutation_worker  feeds damaged inputs to the commands of `tlx`, in a process of its own
delta_debugging  leaves out what a failure does not need
"""
