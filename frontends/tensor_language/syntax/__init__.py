"""The syntax of version 2: text to syntax tree and back.

nodes                   names, types, attributes, regions and functions of the syntax tree, with their text
cursor                  tokens of both versions, the cursor that productions take, regions and error recovery
parser                  the whole grammar in ABNF; programs and functions
productions             types, operands, indices, modifiers, constants and attributes
forms                   the pieces of which texts of operations consist, read and written
printer                 the tree as text
annotations             values checked against type annotations, for trees and the builder
"""
