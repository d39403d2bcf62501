"""The syntax of version 2: text to syntax tree and back.

lexer                   text to tokens, of both versions
cursor                  a place in the tokens, and the steps that every production takes from it
ast                     the syntax tree
parser                  the whole grammar in ABNF; programs and functions
parser_regions          regions, and error recovery
parser_instructions     a production for each instruction
parser_operands         operands, indices, modifiers, constants and attributes
parser_types            types
printer                 the tree as text
annotations             values compared with type annotations, for trees and the builder
"""
