--[[
stat: measure a conversation without reading its messages.

KEYS
  1  turns  list  the head, then one element per turn or piece of one, oldest first

ARGV

RETURNS {revision, turns, messages, tokens, bytes, ttl_ms, first_ms, last_ms}
  bytes     int  of memory, as the server sees it; -1 where it does not say
  ttl_ms    int  time to live; -1 keeps forever, -2 there is no such conversation
  first_ms, last_ms  int  the server's clock when the oldest and the newest were appended

ERRORS
  CORRUPT, FORMAT  what is stored cannot be read
]]
--# include element
--# include head
local turns = KEYS[1]

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end
if head.no == 0 then
  return { "0", 0, 0, 0, 0, -2, 0, 0 }
end
local first, last
first, refusal = read_header(turns, 1)
if first then
  last, refusal = read_header(turns, -1)
end
if refusal then
  return redis.error_reply(refusal)
end
-- An ACL may forbid MEMORY, and not every server has it: the rest is worth an answer.
local bytes = redis.pcall("MEMORY", "USAGE", turns, "SAMPLES", "0")
return {
  revision(head), turns_held(head), messages_held(head), head.tokens - head.tokens_before,
  type(bytes) == "number" and bytes or -1, redis.call("PTTL", turns), first.time_ms, last.time_ms,
}
