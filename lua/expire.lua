--[[
expire: set the remaining life of a conversation until its next append.

KEYS
  1  turns          list   the head, then one element per turn or piece of one, oldest first
  2  summary        text   of the oldest turns
  3  conversations  zset?  the owner's conversations by the time of their last write
  4  lives          zset?  the same by the end of their lives
  5  names          hash?  their ids and titles

ARGV
  1  ttl_ms  int    >= 0      time to live; 0 keeps forever
  2  member  text?  a digest  the conversation in its owner's lists

RETURNS int  1 set; 0 there is no such conversation
]]
--# include life
--# include owner
--# include allowed
--# include listed
local turns = KEYS[1]
local summary = KEYS[2]
local conversations = KEYS[3]
local lives = KEYS[4]
local names = KEYS[5]
local ttl_ms = tonumber(ARGV[1])
local member = ARGV[2]

if redis.call("EXISTS", turns) == 0 then
  return 0
end
local is_listed = conversations and redis.call("ZSCORE", lives, member)
local refusal = is_listed and forbidden(lives, "ZADD")
if refusal then
  return redis.error_reply(refusal)
end
-- The life of the turns first: it takes no room, and a full server lets the rest follow.
set_life(ttl_ms, turns, summary)
if is_listed then
  for _, key in ipairs({ conversations, lives, names }) do
    prolong(key, redis.call("PTTL", key), ttl_ms)
  end
  note_life(lives, member, redis.call("TIME")[1] * 1000, ttl_ms)
end
return 1
