"""Files that Views give to the user."""

from __future__ import annotations

import base64
import binascii

from transom.errors import Refused
from transom.types import ResourceContents

__all__ = ["download_of"]


def download_of(resource: ResourceContents) -> tuple[str, str]:
    """The type of a file, and its bytes in base64.

    Raises:
        Refused: there is nothing in it that could be saved.
    """
    if resource.blob is not None:
        try:
            base64.b64decode(resource.blob, validate=True)
        except (binascii.Error, ValueError):
            raise Refused("The file is not base64") from None
        return resource.mime_type or "application/octet-stream", resource.blob
    if resource.text is not None:
        encoded = base64.b64encode(resource.text.encode("utf-8", "replace")).decode()
        return resource.mime_type or "text/plain", encoded
    raise Refused("The file has no content")
