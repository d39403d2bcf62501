"""`tlx tune`: which tile, cache blocks and packing are the fastest for a product on a machine.

collect     the products of a file
product     a product from its words, as a workload that can be compiled, checked and timed
candidates  knobs that fit, those first that the target's model expects most of
trial       measures one candidate beside the model's choice, on the machine that it runs on
search      which candidates are measured, how often, and which one is kept
pools       where trials run: a process of this machine, or a Dask cluster
session     searches for several products and machines, with progress and a budget
database    what was found, in the user's cache; `--tuned` reads it
"""
