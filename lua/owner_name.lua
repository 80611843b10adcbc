--[[
owner_name: read what a conversation of an owner is called.

KEYS
  1  turns  list  the head, then one element per turn or piece of one, oldest first
  2  names  hash  the ids and titles of the owner's conversations

ARGV
  1  member  text  a digest  the conversation in its owner's lists

RETURNS JSON  [id] or [id, title]; empty where there is no such conversation, or it was lost
]]
local turns = KEYS[1]
local names = KEYS[2]
local member = ARGV[1]

-- What has ended keeps its name until it is taken off the lists, whenever that is.
return redis.call("EXISTS", turns) == 1 and redis.call("HGET", names, member) or ""
