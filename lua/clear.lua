--[[
clear: delete a conversation, readable or not.

KEYS
  1  turns          list   the head, then one element per turn or piece of one, oldest first
  2  summary        text   of the oldest turns
  3  generation     text?  what was begun and erased of the owner
  4  conversations  zset?  the owner's conversations by the time of their last write
  5  lives          zset?  the same by the end of their lives
  6  names          hash?  their ids and titles
  7  cleared        zset?  the owner's conversations that were cleared of late

ARGV
  1  member  text?  a digest  the conversation in its owner's lists

RETURNS int  turns deleted; 0 where there was no conversation

ERRORS
  WRONGTYPE  the key is not a list; nothing was deleted
  FORMAT     what was erased of the owner was written by a later version; nothing was deleted
]]
--# include head
--# include owner
--# include allowed
--# include listed
--# include clearing
local turns = KEYS[1]
local summary = KEYS[2]
local generation = KEYS[3]
local conversations = KEYS[4]
local lives = KEYS[5]
local names = KEYS[6]
local cleared = KEYS[7]
local member = ARGV[1]

local elements = redis.call("LLEN", turns)
local owner, refusal
if generation then
  owner, refusal = clearing_owner(generation, conversations, lives, names, cleared)
  refusal = refusal or forbidden(turns, "DEL")
  if refusal then
    return redis.error_reply(refusal)
  end
end
local head = elements > 0 and read_head(turns)
if elements > 0 then
  redis.call("DEL", turns, summary)
end
if owner then
  -- At last: a listed conversation that does not exist is harmless, the reverse is not.
  note_cleared(generation, owner, conversations, lives, names, cleared, member)
end
-- A damaged head must not keep a conversation from being deleted: every element counts.
return head and math.max(turns_held(head), 1) or elements
