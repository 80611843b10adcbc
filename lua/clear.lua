--[[
clear: delete a conversation, readable or not.

KEYS
  1  turns    list  the head, then one element per turn or piece of one, oldest first
  2  summary  text  of the oldest turns

ARGV

RETURNS int  turns deleted; 0 where there was no conversation

ERRORS
  WRONGTYPE  the key is not a list; nothing was deleted
]]
--# include head
local turns = KEYS[1]
local summary = KEYS[2]

local elements = redis.call("LLEN", turns)
if elements == 0 then
  return 0
end
local head = read_head(turns)
redis.call("DEL", turns, summary)
-- A damaged head must not keep a conversation from being deleted: every element counts.
return head and math.max(turns_held(head), 1) or elements
