"""Knobs files, and `tlx tune`, which finds the fastest tile, cache blocks and packing of a product on a machine.

knobs_file  TOML or JSON, knobs by patterns of products
product     a product from its description, as a workload that can be compiled, checked and timed; products of a file
search      the candidates, ranked by the cost model; which ones are measured, and which one wins
trial       measures one candidate against the model's choice, on the machine it runs on
worker      a process that runs trials
pools       where trials run: a process of this machine, or a Dask cluster
session     searches for several products and machines, with progress and a budget; reports of the results
database    the results, in the user's cache; read by `--tuned`
measure/    measuring machine code, shared with `tlx bench`
"""
