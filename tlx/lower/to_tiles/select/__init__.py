"""Selection: the recipe of a product on a target, from its knobs or the cost model."""
