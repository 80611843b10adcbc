--[[
trim: drop the oldest turns until the limits hold; the newest turn always stays.

KEYS
  1  turns         list  the head, then one element per turn or piece of one, oldest first

ARGV
  1  max_messages  int   >= 0  messages held; 0 is no limit
  2  max_turns     int   >= 0  turns held; 0 is no limit

RETURNS int  turns dropped

ERRORS
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
]]
--# include element
--# include head
--# include oldest
--# include allowed
local turns = KEYS[1]
local max_messages = tonumber(ARGV[1])
local max_turns = tonumber(ARGV[2])

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end
if head.no == 0 then
  return 0
end
local held = turns_held(head)
local dropped
dropped, refusal = drop_oldest(turns, head, max_messages, max_turns)
if refusal then
  return redis.error_reply(refusal)
end
if dropped > 0 then
  refusal = forbidden(turns, "LPUSH")
  if refusal then
    return redis.error_reply(refusal)
  end
  redis.call("LTRIM", turns, dropped + 1, -1)
  redis.call("LPUSH", turns, head_text(head))
end
return held - turns_held(head)
