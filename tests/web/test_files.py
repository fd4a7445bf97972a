"""What a View gives the user to keep."""

import base64

import pytest

from transom.errors import Refused
from transom.types import ResourceContents
from transom.web.seat import download_of


def test_text_is_saved_as_utf_8() -> None:
    mime, data = download_of(ResourceContents(uri="file:///notes.md", text="Grüße\n"))
    assert mime == "text/plain"
    assert base64.b64decode(data).decode() == "Grüße\n"


def test_bytes_are_saved_as_they_are_under_their_type() -> None:
    blob = base64.b64encode(b"\x89PNG\0").decode()
    resource = ResourceContents(uri="file:///x.png", blob=blob, mime_type="image/png")
    assert download_of(resource) == ("image/png", blob)
    assert download_of(ResourceContents(uri="x", blob=blob))[0] == "application/octet-stream"


def test_an_empty_file_is_a_file() -> None:
    assert download_of(ResourceContents(uri="x", text="")) == ("text/plain", "")


def test_half_a_character_does_not_stop_the_rest() -> None:
    _, data = download_of(ResourceContents(uri="x", text="a\ud800b"))
    assert base64.b64decode(data) == b"a?b"


@pytest.mark.parametrize("blob", ["not base64!", "YQ", "YQ==YQ==", "Y\nQ=="])
def test_what_is_not_base64_is_refused(blob: str) -> None:
    with pytest.raises(Refused, match="not base64"):
        download_of(ResourceContents(uri="x", blob=blob))


def test_a_file_without_content_is_refused() -> None:
    with pytest.raises(Refused, match="no content"):
        download_of(ResourceContents(uri="x"))
