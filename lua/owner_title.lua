--[[
owner_title: give a conversation of an owner another title.

KEYS
  1  turns          list  the head, then one element per turn or piece of one, oldest first
  2  generation     text  what was begun and erased of the owner
  3  conversations  zset  the owner's conversations by the time of their last write
  4  names          hash  their ids and titles
  5  cleared        zset  the owner's conversations that were cleared of late

ARGV
  1  began   int   as from owner_begin  what was erased since, is refused
  2  member  text  a digest             the conversation in its owner's lists
  3  title   JSON  [id] or [id, title]  what it is called from now on

RETURNS int  1 set; 0 there is no such conversation, nor one that was emptied by an undo of late

ERRORS
  ERASED <what>  erased or cleared since `began`, or too long ago; nothing was written
  FORMAT         a key was written by a later version; nothing was written
]]
--# include owner
--# include begun
--# include allowed
--# include listed
local turns = KEYS[1]
local generation = KEYS[2]
local conversations = KEYS[3]
local names = KEYS[4]
local cleared = KEYS[5]
local began = tonumber(ARGV[1])
local member = ARGV[2]
local title = ARGV[3]

local owner, refusal = still_begun(generation, cleared, member, began)
if not owner then
  return redis.error_reply(refusal)
end
local is_known = redis.call("EXISTS", turns) == 1 or is_undone(conversations, cleared, member)
if not is_known or redis.call("HEXISTS", names, member) == 0 then
  return 0
end
redis.call("HSET", names, member, title)
return 1
