--[[
owner_begin: give a number to what is going to write for an owner.

KEYS
  1  generation  text  what was begun and erased of the owner

ARGV

RETURNS int  the number; what has it is refused once its owner is erased

ERRORS
  ERASED closed  the owner is being erased just now; nothing was written
  FORMAT         the key was written by a later version; nothing was written
]]
--# include owner
--# include begun
local generation = KEYS[1]

local owner, refusal = read_open(generation)
if refusal then
  return redis.error_reply(refusal)
end
local number = next_number(owner)
write_generation(generation, owner)
return number
