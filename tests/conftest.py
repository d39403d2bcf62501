"""What holds for all tests: a process that runs thousands of them seldom looks for garbage."""

from tlx.fuzz.worker import collect_rarely

collect_rarely()
