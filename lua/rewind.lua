--[[
rewind: undo the newest turns, back to an earlier revision.

KEYS
  1  turns     list  the head, then one element per turn or piece of one, oldest first

ARGV
  1  expected  text  a revision  demanded before the rewind
  2  target    text  a revision  of an element that is held, or 0 for none of them

RETURNS int  1 rewound; 0 the conversation is at `target` already

ERRORS
  CONFLICT <revision>  neither at `expected` nor at `target`; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include element
--# include head
local turns = KEYS[1]
local expected = ARGV[1]
local target = ARGV[2]

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end
local now = revision(head)
if now == target then
  return 0
end
if now ~= expected then
  return redis.error_reply("CONFLICT " .. now)
end
if target == "0" then
  redis.call("DEL", turns)
  return 1
end
local index = tonumber(string.match(target, "^%d+")) - head.first_no + 1
local kept
kept, refusal = read_header(turns, index)
if refusal then
  return redis.error_reply(refusal)
end
-- The ids of what is undone go: a retry of such an append is a new turn.
local undone = head.no - kept.no
local ids = {}
for id in string.gmatch(head.ids, "%S+") do
  ids[#ids + 1] = id
end
head.ids = table.concat(ids, " ", 1, math.max(#ids - undone, 0))
if head.ids == "" then
  head.ids = kept.turn_id
end
head.no, head.turn = kept.no, kept.turn
head.messages, head.tokens = kept.messages, kept.tokens
redis.call("LTRIM", turns, 0, index)
redis.call("LSET", turns, 0, head_text(head))
return 1
