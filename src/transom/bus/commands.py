"""Commands to Redis: in order, in batches, and each of them once; and the scripts among them.

1. Commands that are run while a batch is in flight go into the next batch, so that one round trip
   serves them all.
2. A command whose outcome is unknown is not retried: it may have been carried out. One that Redis
   refused because it does not have the script yet is retried once.
3. While Redis cannot be reached, every command fails at once, until a heartbeat succeeds.

A script runs inside Redis, atomically:

1. A worker is alive while its key `alive:WORKER` exists, which its heartbeat renews. Its value is
   for how many milliseconds: the key of a dead worker would last longer after the clock of Redis,
   by which keys expire, was set back.
2. A lease `lease:NAME` is `WORKER:EPOCH`. It is valid while that worker is alive, so that a
   heartbeat costs the same for one lease and for a million. What is opened to the holder of a lease
   has its epoch, by which a worker that had it before, or has it again, refuses it.
3. Names are digests, and keys begin with the prefix in `ARGV[1]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Any, cast
from urllib.parse import urlsplit

from transom.errors import BusError, BusUnreachable, UsageError

Argument = str | bytes | int

_SCHEMES = ("redis", "rediss", "unix")


_COMMON = """
local prefix = ARGV[1] .. ':'
local function is_alive(worker)
  local key = prefix .. 'alive:' .. worker
  local most = tonumber(redis.call('GET', key) or '')
  if most and redis.call('PTTL', key) > most then redis.call('PEXPIRE', key, most) end
  return most ~= nil
end
local function add(worker, max_entries, max_bytes, expiry, packet, ...)
  if not is_alive(worker) then return 'gone' end
  local inbox, size = prefix .. 'inbox:' .. worker, prefix .. 'size:' .. worker
  if redis.call('XLEN', inbox) >= tonumber(max_entries) then return 'full' end
  local bytes = redis.call('INCRBY', size, #packet)
  if bytes > tonumber(max_bytes) and bytes > #packet then
    redis.call('DECRBY', size, #packet)
    return 'full'
  end
  redis.call('XADD', inbox, '*', 'p', packet, ...)
  redis.call('PEXPIRE', inbox, expiry)
  redis.call('PEXPIRE', size, expiry)
  return 'ok'
end
"""


class Script:
    """A script and its SHA-1, by which Redis caches it."""

    def __init__(self, body: str) -> None:
        self.text = _COMMON + body
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


BEAT = Script("""
-- worker, expiry: 0 if it was not alive any more
local key = prefix .. 'alive:' .. ARGV[2]
if redis.call('PEXPIRE', key, ARGV[3]) == 1 then return 1 end
redis.call('SET', key, ARGV[3], 'PX', ARGV[3])
return 0
""")

CLAIM = Script("""
-- name, worker, expiry of the lease, expiry of the records: its epoch, 0 if another one has it
local key = prefix .. 'lease:' .. ARGV[2]
local held = redis.call('GET', key)
if held then
  local worker, epoch = string.match(held, '^(%x+):(%d+)$')
  if worker == ARGV[3] then
    redis.call('PEXPIRE', key, ARGV[4])
    redis.call('PEXPIRE', prefix .. 'records:' .. ARGV[2], ARGV[5])
    return tonumber(epoch)
  end
  if worker and is_alive(worker) then return 0 end
end
-- It begins with the time, so that it grows although Redis was restarted empty.
local now = redis.call('TIME')
redis.call('SET', prefix .. 'epoch', now[1] .. string.format('%06d', now[2]), 'NX')
local epoch = redis.call('INCR', prefix .. 'epoch')
redis.call('SET', key, ARGV[3] .. ':' .. string.format('%d', epoch), 'PX', ARGV[4])
return epoch
""")

RELEASE = Script("""
-- name, holder
local key = prefix .. 'lease:' .. ARGV[2]
if redis.call('GET', key) == ARGV[3] then return redis.call('DEL', key) end
return 0
""")

WRITE = Script("""
-- name, holder, expiry, limit of fields, limit of bytes, how many to delete, those, then the others
local lease, key = prefix .. 'lease:' .. ARGV[2], prefix .. 'records:' .. ARGV[2]
if redis.call('GET', lease) ~= ARGV[3] then return 'lost' end
local sizes = {}
for _, field in ipairs(redis.call('HKEYS', key)) do
  sizes[field] = #field + redis.call('HSTRLEN', key, field)
end
local first = 8 + tonumber(ARGV[7])
for i = 8, first - 1 do sizes[ARGV[i]] = nil end
for i = first, #ARGV, 2 do sizes[ARGV[i]] = #ARGV[i] + #ARGV[i + 1] end
local fields, bytes = 0, 0
for _, size in pairs(sizes) do fields, bytes = fields + 1, bytes + size end
if fields > tonumber(ARGV[5]) or bytes > tonumber(ARGV[6]) then return 'full' end
for i = 8, first - 1 do redis.call('HDEL', key, ARGV[i]) end
for i = first, #ARGV, 2 do redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', key, ARGV[4])
return 'ok'
""")

SEND = Script("""
-- worker, limit of entries, limit of bytes, expiry, packet
return add(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
""")

OPEN = Script("""
-- name, limit of entries, limit of bytes, expiry, packet, sender: what came of it, the holder, and
-- the last entry that the sender's own inbox has until now
local held = redis.call('GET', prefix .. 'lease:' .. ARGV[2])
local worker, epoch = string.match(held or '', '^(%x+):(%d+)$')
if not worker then return {'nobody', '', ''} end
local last = redis.call('XREVRANGE', prefix .. 'inbox:' .. ARGV[7], '+', '-', 'COUNT', 1)[1]
local outcome = add(worker, ARGV[3], ARGV[4], ARGV[5], ARGV[6], 'e', epoch)
return {outcome, worker, last and last[1] or '0-0'}
""")

TAKEN = Script("""
-- worker, then an entry that was read and the bytes it had, and so on
local inbox, bytes = prefix .. 'inbox:' .. ARGV[2], 0
for i = 3, #ARGV, 2 do
  if redis.call('XDEL', inbox, ARGV[i]) == 1 then bytes = bytes + tonumber(ARGV[i + 1]) end
end
if bytes > 0 then redis.call('DECRBY', prefix .. 'size:' .. ARGV[2], bytes) end
return bytes
""")

SCRIPTS = (BEAT, CLAIM, RELEASE, WRITE, SEND, OPEN, TAKEN)


class Commands:
    """Runs commands in Redis.

    Args:
        url: where Redis is: `redis://`, `rediss://` (TLS) or `unix://`.
        prefix: the prefix of every key.
        timeout: seconds that Redis may take to answer.
        on_trouble: called when a command fails.

    Raises:
        UsageError: it is not the URL of a Redis, or the package is not installed.
    """

    def __init__(
        self, url: str, prefix: str, timeout: float, on_trouble: Callable[[], object]
    ) -> None:
        try:
            from redis import exceptions  # noqa: PLC0415 - an extra
            from redis.asyncio import Redis as Client  # noqa: PLC0415
            from redis.asyncio.retry import Retry  # noqa: PLC0415
            from redis.backoff import NoBackoff  # noqa: PLC0415
        except ImportError as error:
            raise UsageError("A bus needs the Redis client: pip install 'transom[bus]'") from error
        self.where = _where(url)
        """The address of Redis for messages, without the password."""
        self.unreachable: BusUnreachable | None = None
        """Why every command fails at once; None while Redis answers."""
        self._prefix = prefix
        self.on_trouble = on_trouble
        connect = cast("Any", Client).from_url
        settings: dict[str, Any] = {"socket_connect_timeout": timeout, "protocol": 2}
        settings["retry"] = Retry(NoBackoff(), 0)  # see rule 2
        try:
            self._client: Any = connect(url, socket_timeout=timeout, **settings)
            # Its timeout is in `read`: with one here, the client swallows cancellations (it uses
            # `asyncio.wait_for`, which does so before Python 3.12).
            self._reader: Any = connect(url, socket_timeout=None, **settings)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.where} is not the URL of a Redis: {error}") from None
        self._reader.set_response_callback("XREAD", _as_it_came)
        for command in ("HGETALL", "INFO"):
            self._client.set_response_callback(command, _as_it_came)
        self._timeout = timeout
        self._refused: type[Exception] = exceptions.ResponseError
        self._no_script: type[Exception] = exceptions.NoScriptError
        self._queue: list[tuple[tuple[Argument, ...], asyncio.Future[Any]]] = []
        self._running: asyncio.Task[None] | None = None

    def run(self, script: Script, *given: Argument, anyway: bool = False) -> asyncio.Future[Any]:
        """Run a script after all earlier commands; the future of its result.

        It fails with `BusUnreachable`, or with `BusError` if Redis refuses it. `anyway`: try it
        even if Redis could not be reached before.
        """
        return self.command("EVALSHA", script.sha, 0, self._prefix, *given, anyway=anyway)

    def command(self, *command: Argument, anyway: bool = False) -> asyncio.Future[Any]:
        """The same, for a plain Redis command."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.unreachable is not None and not anyway:
            _fail(future, BusUnreachable(str(self.unreachable)))
            return future
        self._queue.append((command, future))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run_all())
        return future

    def key(self, kind: str, name: str) -> str:
        """The key of something."""
        return f"{self._prefix}:{kind}:{name}"

    async def aclose(self) -> None:
        """Finish the commands, and close the connections."""
        while self._running is not None:
            await asyncio.wait([self._running])
        await self._client.aclose()
        await self._reader.aclose()

    async def _run_all(self) -> None:
        try:
            while self._queue:
                batch, self._queue = self._queue, []
                results: list[Any]
                try:
                    results = await self._execute(self._client, [command for command, _ in batch])
                except BusUnreachable as error:
                    results = [BusUnreachable(str(error)) for _ in batch]
                    self.on_trouble()
                for (_, future), result in zip(batch, results, strict=True):
                    if isinstance(result, BusError):
                        _fail(future, result)
                    elif not future.done():
                        future.set_result(result)
        finally:
            self._running = None

    async def read(self, key: str, count: int, *before: Argument) -> list[Any]:
        """Run a script, then wait for entries of a stream: `[id, [field, value, ...]]` each.

        There are none if none came for a while.

        Raises:
            BusUnreachable: it could not be read.
        """
        read = ("XREAD", "COUNT", count, "BLOCK", int(self._timeout * 1000), "STREAMS", key, "0-0")
        commands: list[tuple[Argument, ...]] = [read]
        if before:
            commands.insert(0, ("EVALSHA", before[0], 0, self._prefix, *before[1:]))
        try:
            # Redis answers after half of that, without an entry: a connection that is silent for
            # longer is dead, though nobody may have told this side.
            async with asyncio.timeout(2 * self._timeout):
                result = (await self._execute(self._reader, commands))[-1]
        except TimeoutError:
            raise BusUnreachable(f"Redis at {self.where} does not answer") from None
        if isinstance(result, BusError):
            raise result
        return result[0][1] if result else []

    async def _execute(self, client: Any, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """The result or the error of each command."""
        results = await self._pipeline(client, commands)
        unknown = [i for i, result in enumerate(results) if isinstance(result, self._no_script)]
        if unknown:
            await self._pipeline(client, [("SCRIPT", "LOAD", each.text) for each in SCRIPTS])
            again = await self._pipeline(client, [commands[i] for i in unknown])
            for i, result in zip(unknown, again, strict=True):
                results[i] = result
        return [
            BusError(f"Redis refused: {str(result)[:200]}")
            if isinstance(result, self._refused)
            else result
            for result in results
        ]

    async def _pipeline(self, client: Any, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        try:
            async with client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return await pipeline.execute(raise_on_error=False)
        # Not only the client's own errors: uvloop raises RuntimeError for a write into a connection
        # that has just been closed, and an answer that cannot be read is a ValueError.
        except Exception as error:  # noqa: BLE001 - or its callers would wait forever
            kind = type(error).__name__
            text = f"Redis at {self.where} cannot be reached: {str(error)[:200] or kind}"
            raise BusUnreachable(text) from None


def _as_it_came(response: Any, **_: object) -> Any:
    return response


def _where(url: str) -> str:
    """The URL of a Redis without its password.

    Raises:
        UsageError: it is not the URL of a Redis.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise UsageError("The URL of the bus cannot be read: give redis://HOST:PORT") from None
    if parts.scheme not in _SCHEMES or not (host or parts.path):
        raise UsageError(
            f"The URL of a bus is redis://HOST:PORT, rediss:// (TLS) or unix://, "
            f"not {parts.scheme[:20] or 'without a scheme'}{'://' if parts.scheme else ''}"
        )
    address = f"[{host}]" if ":" in host else host
    where = parts.path if parts.scheme == "unix" else f"{address}:{port or 6379}"
    return f"{parts.scheme}://{where}"


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # nobody may be awaiting it; asyncio would warn
