"""Knobs files, and `tlx tune`, which finds the fastest tile, cache blocks and packing of a product on a machine.

knobs_file  TOML or JSON, knobs by patterns of products
workload    a function on tensors with its expected result and amount of work, shared with `tlx bench`
product     a product as a workload, from its description; products of a file
search      the candidates, which of them are measured, and which one is the fastest
trial       measures one candidate against the model's choice
timing      interleaved samples of machine code, shared with `tlx bench`
machine     the processor's name, pinning, settings of libraries
worker      a process that runs trials
pools       where trials run: a process of this machine, or a Dask cluster
session     searches for several products and machines within a budget; reports of the results
database    the results, in the user's cache; read by `--tuned`
"""
