"""What runs inside Redis, each in one step.

1. A worker is alive while its key `alive:WORKER` is there, which its heartbeat keeps.
2. A lease `lease:NAME` is `WORKER:EPOCH`. It counts while that worker is alive, so that a heartbeat
   costs the same for one lease and for a million.
3. Names are digests by the time they get here, and keys are made from the prefix in `ARGV[1]`.
"""

from __future__ import annotations

from hashlib import sha1

_COMMON = """
local prefix = ARGV[1] .. ':'
local function is_alive(worker)
  return redis.call('EXISTS', prefix .. 'alive:' .. worker) == 1
end
local function add(worker, max_entries, max_bytes, expiry, packet)
  if not is_alive(worker) then return 'gone' end
  local inbox, size = prefix .. 'inbox:' .. worker, prefix .. 'size:' .. worker
  if redis.call('XLEN', inbox) >= tonumber(max_entries) then return 'full' end
  local bytes = redis.call('INCRBY', size, #packet)
  if bytes > tonumber(max_bytes) and bytes > #packet then
    redis.call('DECRBY', size, #packet)
    return 'full'
  end
  redis.call('XADD', inbox, '*', 'p', packet)
  redis.call('PEXPIRE', inbox, expiry)
  redis.call('PEXPIRE', size, expiry)
  return 'ok'
end
"""


class Script:
    """A script, and what Redis knows it by."""

    def __init__(self, body: str) -> None:
        self.text = _COMMON + body
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


BEAT = Script("""
-- worker, expiry: 0 if it was not alive any more
local key = prefix .. 'alive:' .. ARGV[2]
if redis.call('PEXPIRE', key, ARGV[3]) == 1 then return 1 end
redis.call('SET', key, 1, 'PX', ARGV[3])
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
-- name, limit of entries, limit of bytes, expiry, packet: what came of it, and the holder
local held = redis.call('GET', prefix .. 'lease:' .. ARGV[2])
local worker = held and string.match(held, '^(%x+):%d+$')
if not worker then return {'nobody', ''} end
return {add(worker, ARGV[3], ARGV[4], ARGV[5], ARGV[6]), worker}
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
