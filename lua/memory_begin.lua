--[[
memory_begin: read a block of the working memory of an owner, in order to change it.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  memory      hash  the blocks by their labels

ARGV
  1  label  text  of the block

RETURNS {number, value}
  number  int    what has it is refused once the owner is erased; microseconds of the clock
  value   bytes  as memory_write stored it; empty where there is none

ERRORS
  ERASED closed  the owner is being erased just now; nothing was written
  FORMAT         what was begun and erased was written by a later version; nothing was written
]]
--# include owner
--# include begun
local generation = KEYS[1]
local memory = KEYS[2]
local label = ARGV[1]

local owner, refusal = read_open(generation)
if refusal then
  return redis.error_reply(refusal)
end
local value = redis.call("HGET", memory, label) or ""
local number = next_number(owner)
write_generation(generation, owner)
return { number, value }
