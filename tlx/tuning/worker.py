"""A process that runs trials: reads one from each line of standard input, and writes its outcome to standard output.

    python -m tlx.tuning.worker 3 2      runs two threads, pinned to processor 3 and another one
    {"words": "matmul 64x64x64 float", ...}   ->   {"ratios": [...], ...}

It ends when its input ends, so that it does not outlive its parent.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any


def main() -> None:
    """Run the trials on standard input."""
    from tlx.target.host import cpu_flags
    from tlx.tuning import machine

    cpu, threads = map(int, sys.argv[1:])
    machine.pin(cpu, threads)
    machine.prepare_libraries(cpu_flags(), threads)
    outcomes = os.dup(1)
    os.dup2(2, 1)  # other output must not be mistaken for an outcome
    from tlx.tuning.trial import Trial, run_trial

    for line in sys.stdin:
        fields: dict[str, Any] = json.loads(line)
        fields["features"] = tuple(fields["features"])
        outcome = run_trial(Trial(**fields))
        try:
            os.write(outcomes, f"{json.dumps(asdict(outcome))}\n".encode())
        except BrokenPipeError:  # the parent was interrupted
            return


if __name__ == "__main__":
    main()
