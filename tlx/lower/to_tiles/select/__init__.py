"""Selection: the recipe of a product on a target, by its knobs or by the cost model."""
