"""What is known of called functions: signatures of those declared, and of those defined in the module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tlx.diagnostics import ParseError
from tlx.ir.module import Function, Instruction, Module, Signature, Twin
from tlx.ir.reader import parse


@dataclass(eq=False)
class Callees:
    """Signatures of a module's functions, looked up once each."""

    module: Module
    _known: dict[str, Signature | None] = field(default_factory=dict[str, Signature | None])

    def signature(self, call: Instruction) -> Signature | None:
        """The signature of what is called, None if that is not known."""
        name = call.callee
        if name is None:
            return None
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Signature | None:
        declared = self.module.declarations.get(name)
        if declared is not None:
            return declared.signature
        for item in self.module.items:
            if isinstance(item, Function | Twin) and item.name == name:
                return item.of.signature if isinstance(item, Twin) else item.signature
        return self._unparsed(name)

    def _unparsed(self, name: str) -> Signature | None:
        """The signature of a function whose body nobody needs."""
        header = re.search(rf"(?m)^define\b([^\n]*@{re.escape(name)}\([^\n]*)\{{[^\n{{]*$", self.module.raw_text())
        if header is None:
            return None
        try:
            return parse(f"declare{header.group(1)}\n").declarations[name].signature
        except ParseError:
            return None

    def attributes(self, call: Instruction) -> str:
        """Function attributes of a call, those of the callee and of groups included."""
        signature = self.signature(call)
        text = call.trailer.split("!", 1)[0] + " " + (signature.attributes if signature is not None else "")
        return re.sub(r"#\d+", lambda found: self.module.attribute_groups.get(found.group(), ""), text)

    def argument_attributes(self, call: Instruction, index: int) -> str:
        """Attributes of an argument, those of the parameter included."""
        signature = self.signature(call)
        written = call.arg_attributes[index]
        if signature is None or index >= len(signature.arguments):
            return written
        return f"{written} {signature.arguments[index].attributes}"

    def result_attributes(self, call: Instruction) -> str:
        """Attributes of what a call returns."""
        signature = self.signature(call)
        head = call.text.split("@", 1)[0]
        return head if signature is None else f"{head} {signature.result_attributes}"
