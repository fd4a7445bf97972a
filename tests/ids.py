"""Names of test cases that are the same in every process."""

import re


def plain(value: object) -> str:
    """The value as printable text, without the address some objects have in theirs."""
    text = str(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text if text.isprintable() else ascii(text))
