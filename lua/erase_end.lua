--[[
erase_end: open an owner to writers again, once all that the owner had is deleted.

KEYS
  1  generation     text   what was begun and erased of the owner
  2  conversations  zset   the owner's conversations by the time of their last write
  3  lives          zset   the same by the end of their lives
  4  names          hash   their ids and titles
  5  cleared        zset   the owner's conversations that were cleared of late
  6  sign           text*  of more than conversations: where one is there, others may be, too

ARGV
  1  number  int  as from erase_begin  which erasure it is

RETURNS {ended, conversations, turns, messages, keys}
  ended    int  1; 0 the last step was too long ago, or not all is deleted; 2 there is more of
                the owner than conversations
  conversations, turns, messages, keys  int  what was deleted; by erasures that went on at the
                same time, and by one before it that was not ended, too

ERRORS
  FORMAT  a key was written by a later version; nothing was written
]]
--# include owner
--# include allowed
--# include erasing
local generation = KEYS[1]
local conversations = KEYS[2]
local lives = KEYS[3]
local names = KEYS[4]
local cleared = KEYS[5]
local first_of_sign = 6
local number = tonumber(ARGV[1])

local owner, refusal = read_generation(generation)
refusal = refusal or forbidden(generation, "SET") or forbidden(names, "UNLINK")
if refusal then
  return redis.error_reply(refusal)
end
local state = state_of(owner, number)
if state == 0 or state == 1 and redis.call("EXISTS", conversations, lives) > 0 then
  return { 0, 0, 0, 0, 0 }
end
for at = first_of_sign, #KEYS do
  if state == 1 and redis.call("EXISTS", KEYS[at]) == 1 then
    return { 2, 0, 0, 0, 0 }
  end
end
-- A later one that is still at work opens by itself.
if state == 1 and owner.erased == number then
  owner.keys = owner.keys + redis.call("UNLINK", names, cleared)
  owner.ended = next_number(owner)
  owner.erased, owner.closed_until = owner.ended, 0
  write_generation(generation, owner)
end
return { 1, owner.conversations, owner.turns, owner.messages, owner.keys }
