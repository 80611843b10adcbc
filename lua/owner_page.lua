--[[
owner_page: list the conversations of an owner, those that were written to last first.

KEYS
  1  conversations  zset  the owner's conversations by the time of their last write
  2  names          hash  their ids and titles

ARGV
  1  before  int  >= 0  only older ones than this number; 0 leaves none out
  2  limit   int  >= 1  conversations read at most

RETURNS {member, number, name, ...}
  member  text  the digest of a conversation
  number  int   of its last write: the server's clock in microseconds
  name    JSON  [id] or [id, title]; empty where it was lost
]]
local conversations = KEYS[1]
local names = KEYS[2]
local before = tonumber(ARGV[1])
local limit = tonumber(ARGV[2])

local newest = before > 0 and string.format("(%d", before) or "+inf"
local found = redis.call(
  "ZREVRANGEBYSCORE", conversations, newest, "-inf", "WITHSCORES", "LIMIT", 0, limit
)
local answer = {}
for place = 1, #found, 2 do
  local member = found[place]
  answer[#answer + 1] = member
  answer[#answer + 1] = tonumber(found[place + 1])
  answer[#answer + 1] = redis.call("HGET", names, member) or ""
end
return answer
