"""Values in Redis that only workers with the same secret write and take."""

from __future__ import annotations

import hashlib
import hmac

from transom.errors import UsageError

_MIN_SECRET = 32
_TAG = 16  # bytes


class Seal:
    """Puts a tag in front of a value, which nobody can make without the secret.

    The tag is for a place, such as the inbox of one worker, and is worth nothing at another.
    Without a secret there are no tags.

    Raises:
        UsageError: the secret is too short.
    """

    def __init__(self, secret: str | None) -> None:
        if secret is not None and len(secret) < _MIN_SECRET:
            raise UsageError(
                f"Bus(secret=...) needs at least {_MIN_SECRET} characters, such as "
                "secrets.token_hex() makes"
            )
        self._key = None if secret is None else hashlib.sha512(secret.encode()).digest()

    @property
    def fleet(self) -> str:
        """What tells the keys of this fleet from those of others with another secret."""
        return "" if self._key is None else f":{self._tag('fleet', b'').hex()}"

    def write(self, place: str, value: bytes) -> bytes:
        """The value with its tag."""
        return value if self._key is None else self._tag(place, value) + value

    def read(self, place: str, sealed: bytes) -> bytes:
        """The value.

        Raises:
            ValueError: it was not written here with this secret.
        """
        if self._key is None:
            return sealed
        tag, value = sealed[:_TAG], sealed[_TAG:]
        if not hmac.compare_digest(tag, self._tag(place, value)):
            raise ValueError("it was written with another secret, or for another place")
        return value

    def _tag(self, place: str, value: bytes) -> bytes:
        digest = hashlib.blake2b(key=self._key or b"", digest_size=_TAG)
        digest.update(b"%d:" % len(place) + place.encode(errors="surrogatepass"))
        digest.update(value)
        return digest.digest()
