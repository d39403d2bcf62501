"""Runs a module on numpy at any stage: the oracle that lowering is tested against."""
