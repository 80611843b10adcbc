--[[
fold_begin: become the one who folds turns into the summary, and read it.

KEYS
  1  turns       list   the head, then one element per turn or piece of one, oldest first
  2  summary     text   of the oldest turns
  3  lease       text   who folds now; expires by itself
  4  generation  text?  what was begun and erased of the owner
  5  cleared     zset?  the owner's conversations that were cleared of late

ARGV
  1  token     text                       tells this one from others
  2  lease_ms  int   >= 1                 how long at most
  3  began     int?  as from owner_begin  what was erased since, is refused
  4  member    text? a digest             the conversation in its owner's lists

RETURNS {granted, summary, first_turn}
  granted     int    1 the lease is taken; 0 somebody else folds
  summary     bytes  as `fold` stored it; empty where there is none
  first_turn  int    the oldest turn held; those before it cannot be folded any more

ERRORS
  ERASED <what>    erased or cleared since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
]]
--# include head
--# include owner
--# include begun
local turns = KEYS[1]
local summary = KEYS[2]
local lease = KEYS[3]
local generation = KEYS[4]
local cleared = KEYS[5]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])
local began = tonumber(ARGV[3])
local member = ARGV[4]

local head, refusal = read_head(turns)
if generation and not refusal then
  refusal = select(2, still_begun(generation, cleared, member, began))
end
if refusal then
  return redis.error_reply(refusal)
end
-- Its own token is there where this command is sent again after its answer was lost.
local granted = redis.call("SET", lease, token, "NX", "PX", lease_ms)
  or redis.call("GET", lease) == token
return { granted and 1 or 0, redis.call("GET", summary) or "", head.first_turn }
