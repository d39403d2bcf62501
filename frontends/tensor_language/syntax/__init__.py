"""The syntax of version 2: text to syntax tree and back.

nodes                   names, types, attributes, regions and functions of the syntax tree, with their text
cursor                  tokens of both versions, and the cursor that productions take
parser                  the whole grammar in ABNF; programs and functions
parser_regions          regions, and error recovery
productions             types, operands, indices, modifiers, constants and attributes
forms                   the pieces of which texts of operations consist, read and written
printer                 the tree as text
annotations             values checked against type annotations, for trees and the builder
"""
