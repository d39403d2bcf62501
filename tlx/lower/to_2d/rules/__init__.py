"""Rules: the code for each tensor operation, one file for each family; `table` lists them."""
