"""`tlx bench models`: whole models beside XLA, PyTorch and onnxruntime, in one process.

workloads       the models and their sizes
programs        the models in JAX, which every library is compared with
torch_programs  the same in PyTorch
libraries       TLX and the other libraries, each with a model ready to run
measure         checks and times a model
tables          results as JSON, text and Markdown
bars            results as a plot
command         the action of `tlx bench models`
"""
