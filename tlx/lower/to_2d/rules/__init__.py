"""Rules: how the result of each tensor operation is written, one file for each family; `table` lists them."""
