--[[
erase_some: delete conversations of an owner, or other keys of the owner, and count them.

KEYS
  1  generation     text  what was begun and erased of the owner
  2  conversations  zset  the owner's conversations by the time of their last write
  3  lives          zset  the same by the end of their lives
  4  names          hash  their ids and titles
  5  part           text* the keys of the first conversation, turns and summary first, then the next

ARGV
  1  number  int    as from erase_begin  which erasure it is
  2  member  text*  the digests of the conversations; as many keys for each

RETURNS {state, summaries, member, ...}
  state      int   1 deleted; or nothing was: 0 the last step was too long ago, so that others may
                   have written; 2 a later erasure has deleted all and ended, so that others may
  summaries  int   how many of the keys that were deleted were summaries
  member     text  the digests of the next conversations; none where none is left

ERRORS
  FORMAT  a key was written by a later version; nothing was deleted
]]
--# include head
--# include held
--# include owner
--# include allowed
--# include listed
--# include erasing
local generation = KEYS[1]
local conversations = KEYS[2]
local lives = KEYS[3]
local names = KEYS[4]
local number = tonumber(ARGV[1])
local first_of_part = 5
local first_of_member = 2

local owner, refusal = read_generation(generation)
if not owner then
  return redis.error_reply(refusal)
end
local state = state_of(owner, number)
if state ~= 1 then
  return { state, 0 }
end
refusal = forbidden(generation, "UNLINK", "SET") or forbidden(conversations, "ZREM")
  or forbidden(lives, "ZREM") or forbidden(names, "HDEL")
for part = first_of_part, #KEYS do
  refusal = refusal or forbidden(KEYS[part], "UNLINK")
end
if refusal then
  return redis.error_reply(refusal)
end
local members = #ARGV - first_of_member + 1
local each = (#KEYS - first_of_part + 1) / math.max(members, 1)
local summaries = 0
for place = 0, members - 1 do
  local first = first_of_part + place * each
  local member = ARGV[first_of_member + place]
  local turns, messages = measure(KEYS[first])
  local listed = redis.call("ZSCORE", conversations, member)
  if turns and (turns >= 0 or listed) then
    owner.conversations = owner.conversations + 1
    owner.turns = owner.turns + math.max(turns, 0)
    owner.messages = owner.messages + math.max(messages, 0)
  end
  for part = first, first + each - 1 do
    local gone = redis.call("UNLINK", KEYS[part])
    owner.keys = owner.keys + gone
    summaries = summaries + (part == first + 1 and gone or 0)
  end
  take_off(conversations, lives, names, member)
end
close(generation, owner)
return { 1, summaries, unpack(next_members(conversations, lives)) }
