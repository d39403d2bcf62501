"""Knobs files, and `tlx tune`: which tile, cache blocks and packing are the fastest for a product on a machine.

knobs_file  TOML or JSON, knobs by patterns of products
product     a product from its description, as a workload that can be compiled, checked and timed; products of a file
search      the candidates, most promising first by the cost model; which are measured, and which one is kept
trial       measures one candidate against the model's choice, on the machine that it runs on
worker      a process that runs trials
pools       where trials run: a process of this machine, or a Dask cluster
session     searches for several products and machines, with progress and a budget
database    the results, in the user's cache; `--tuned` reads it
report      what was found, for the user
"""
