--[[
memory_write: store a block of the working memory of an owner, unless it was changed meanwhile.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  memory      hash  the blocks by their labels: 1 <revisions> <text>

ARGV
  1  began     int   as from memory_begin  what was erased since, is refused
  2  ttl_ms    int   >= 0                  time to live; 0 keeps forever
  3  label     text                        of the block
  4  expected  text  visible ASCII         the revisions that it has; - where there is none
  5  revision  text  visible ASCII         of this write, random; no comma
  6  text      text                        what it says from now on

RETURNS int  1 stored; 0 it has other revisions, and nothing was written

ERRORS
  ERASED <what>    erased since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
]]
--# include allowed
--# include life
--# include owner
--# include begun
local generation = KEYS[1]
local memory = KEYS[2]
local began = tonumber(ARGV[1])
local ttl_ms = tonumber(ARGV[2])
local label = ARGV[3]
local expected = ARGV[4]
local revision = ARGV[5]
local text = ARGV[6]
local KEPT = 8 -- revisions of the newest writes, newest last, by which one sent again is known

local stored = redis.call("HGET", memory, label)
local format, found = string.match(stored or "1 - ", "^(%d+) (%S+) ")
if not format then
  return redis.error_reply("CORRUPT a block of the working memory is not one of ours")
end
if format ~= "1" then
  return redis.error_reply("FORMAT " .. format)
end
local revisions = {}
for known in string.gmatch(found ~= "-" and found or "", "[^,]+") do
  if known == revision then
    return 1 -- sent again after its answer was lost; others may have written since
  end
  table.insert(revisions, known)
end
local _, refusal = still_begun(generation, nil, nil, began)
refusal = refusal or forbidden(memory, "HSET", life_command(ttl_ms))
if refusal then
  return redis.error_reply(refusal)
end
if found ~= expected then
  return 0
end
table.insert(revisions, revision)
local newest = table.concat(revisions, ",", math.max(#revisions - KEPT + 1, 1))
redis.call("HSET", memory, label, "1 " .. newest .. " " .. text)
set_life(ttl_ms, memory)
return 1
