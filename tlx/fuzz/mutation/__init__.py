"""Damaged texts and bitcode: whatever the damage, the answer is a result or a clean error, and quick.

mutate       seed texts, and mutations of texts and bitcode
worker       feeds mutated inputs to the commands of `tlx`, in a process of its own
campaign     starts workers, counts findings and keeps the first input of each: `tlx fuzz --malformed`
"""
