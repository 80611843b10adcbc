--[[
seed: fill an empty conversation with elements of another one.

KEYS
  1  turns          list   the head, then one element per turn or piece of one, oldest first
  2  summary        text   of an earlier conversation under this id; goes
  3  generation     text?  what was begun and erased of the owner
  4  conversations  zset?  the owner's conversations by the time of their last write
  5  lives          zset?  the same by the end of their lives
  6  names          hash?  their ids and titles
  7  cleared        zset?  the owner's conversations that were cleared of late

ARGV
  1  ttl_ms  int    >= 0                 time to live; 0 keeps forever
  2  began   int?   as from owner_begin  what was erased since, is refused
  3  member  text?  a digest             the conversation in its owner's lists
  4  name    JSON?  [id]                 the same, to be read again
  5  source  text?  a digest, or empty   the other one, if it is the owner's; likewise refused
  6  list    bytes*                      the new list: its head, and its elements

RETURNS int  1 filled; 0 it holds just these elements already

ERRORS
  CONFLICT <revision>  it holds something else; nothing was written
  ERASED <what>        erased or cleared since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include head
--# include allowed
--# include owner
--# include begun
--# include listed
local turns = KEYS[1]
local summary = KEYS[2]
local generation = KEYS[3]
local conversations = KEYS[4]
local lives = KEYS[5]
local names = KEYS[6]
local cleared = KEYS[7]
local ttl_ms = tonumber(ARGV[1])
local began = tonumber(ARGV[2])
local member = ARGV[3]
local name = ARGV[4]
local source = ARGV[5]
local first_of_list = generation and 6 or 2

local held = redis.call("LLEN", turns)
if held > 0 then
  local head, refusal = read_head(turns)
  if refusal then
    return redis.error_reply(refusal)
  end
  local given = #ARGV - first_of_list + 1
  if held == given and redis.call("LINDEX", turns, 0) == ARGV[first_of_list] then
    return 0
  end
  return redis.error_reply("CONFLICT " .. revision(head))
end
local owner
local refusal = forbidden(turns, "DEL", "PEXPIRE")
if generation and not refusal then
  owner, refusal = still_begun(generation, cleared, member, began)
  if not refusal and source ~= "" then
    refusal = select(2, still_begun(generation, cleared, source, began))
  end
  refusal = refusal or listing_forbidden(generation, conversations, lives, names)
end
if refusal then
  return redis.error_reply(refusal)
end
if owner then
  list_it(generation, owner, conversations, lives, names, member, name, ttl_ms, true)
end
-- In slices, as Lua's unpack stops at some 8,000 values.
for start = first_of_list, #ARGV, 1000 do
  redis.call("RPUSH", turns, unpack(ARGV, start, math.min(start + 999, #ARGV)))
end
redis.call("DEL", summary)
if ttl_ms > 0 then
  redis.call("PEXPIRE", turns, ttl_ms)
end
return 1
