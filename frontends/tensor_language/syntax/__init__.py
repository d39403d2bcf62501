"""The syntax of version 2: text to syntax tree and back.

nodes                   names, types, attributes, regions and functions of the syntax tree, with their text
lexer                   text to tokens, of both versions
cursor                  a place in the tokens, and the steps that every production takes from it
parser                  the whole grammar in ABNF; programs and functions
parser_regions          regions, and error recovery
parser_operands         operands, indices, modifiers, constants and attributes
parser_types            types
forms                   the pieces that texts of operations are made of, read and written
printer                 the tree as text
annotations             values compared with type annotations, for trees and the builder
"""
