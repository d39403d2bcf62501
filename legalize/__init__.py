"""Targets: each module here or in an architecture's folder turns tile operations into one machine's instructions.

The folder is installed as ``tlx.legalize``. A file placed here or in such a folder is found by discovery; nothing lists
them. A module (or package) that is a target has the target's name and a ``TARGET``.
"""
