"""How commands start and end: these tests run the installed ones."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # lit puts this into the namespace of this file
    config: Any = None

config.environment["TLX_SERVER"] = ""
