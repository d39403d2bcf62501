"""Random tensor programs, checked at every stage and as machine code: `tlx fuzz`.

generation/   random programs with their meaning, drawn from a seed (generation-based fuzzing)
options       random options of a lowering: processor, features, knobs
check         evaluates a program, each stage's output, and runs the machine code on guarded memory
worker        checks programs in a process of its own, which may die
campaign      feeds workers, watches them, counts outcomes, writes failures to files
shrink        reduces a failing program
delta_debugging  leaves out what a failure does not need
mutation/     mutated texts and bitcode through reader, verifier and lowering (mutation-based fuzzing)
command       what `tlx fuzz` does
"""
