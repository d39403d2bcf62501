"""Reports: `tlx explain`: one HTML page that shows what the lowering makes of a program, and why."""
