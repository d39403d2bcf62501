"""Random tensor programs, checked at every stage and as machine code: `tlx fuzz`.

choices      what is drawn for a program, as a tree: drawn from a seed, kept, cut down, drawn again
profiles     what programs may contain
programs     a seed's program; its functions are of a few `forms` (products, sums in loops, moves, ...) or
             `dataflow`: a graph of any operations and ordinary instructions
calling      calling conventions, and how arrays are passed: in registers of their own, by value
model        arrays, and what forms mean in numpy
check        evaluates a program, each stage's output, and runs machine code on `guarded` memory
worker       checks programs in a process of its own, which may die
campaign     feeds workers, watches them, has failures cut down (`shrink`) and written out (`report`)
malformed    mutated texts and bitcode through reader, verifier and lowering
"""
