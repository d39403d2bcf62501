"""Targets: each module here turns tile operations into the instructions of one machine.

The folder is installed as ``tlx.legalize``. A file placed here is found by discovery; nothing lists them.
"""
