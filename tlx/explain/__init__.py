"""Reports: `tlx explain` writes an HTML page that shows how a program is lowered, and why."""
