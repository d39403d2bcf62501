"""Knobs files, and `tlx tune`: which tile, cache blocks and packing are the fastest for a product on a machine.

knobs_file  TOML or JSON, knobs by patterns of products
product     a product from its words, as a workload that can be compiled, checked and timed; the products of a file
search      candidates, those first that the target's model expects most of; which are measured, and which one is kept
trial       measures one candidate beside the model's choice, on the machine that it runs on
worker      a process that runs trials
pools       where trials run: a process of this machine, or a Dask cluster
session     searches for several products and machines, with progress and a budget
database    what was found, in the user's cache; `--tuned` reads it
report      what was found, for the user
"""
