--[[
erase_begin: close an owner to writers, so that all that the owner has can be deleted.

KEYS
  1  generation     text  what was begun and erased of the owner
  2  conversations  zset  the owner's conversations by the time of their last write
  3  lives          zset  the same by the end of their lives

ARGV
  1  again  int  0 or 1  1 goes on with counting where it began before

RETURNS {number, member, ...}
  number  int   of this erasure: what began before it is refused from now on
  member  text  the digests of the first conversations

ERRORS
  FORMAT  the key was written by a later version; nothing was written
]]
--# include owner
--# include allowed
--# include erasing
local generation = KEYS[1]
local conversations = KEYS[2]
local lives = KEYS[3]
local again = ARGV[1] == "1"

local owner, refusal = read_generation(generation)
refusal = refusal or forbidden(generation, "UNLINK", "SET")
if refusal then
  return redis.error_reply(refusal)
end
-- One that was not ended is gone on with, and so is its count.
if owner.closed_until == 0 and not again then
  owner.conversations, owner.turns, owner.messages, owner.keys = 0, 0, 0, 0
end
owner.erased = next_number(owner)
close(generation, owner)
return { owner.erased, unpack(next_members(conversations, lives)) }
