"""`tlx bench models`: whole models beside XLA, PyTorch and onnxruntime, in one process.

table           the models and their sizes
programs        the models in JAX, which every library is compared with
torch_programs  the same in PyTorch
entrants        TLX and the other libraries, each with a model ready to run
running         checks and times a model
tables          results as JSON, text and Markdown
bars            results as a plot
command         the action of `tlx bench models`
"""
