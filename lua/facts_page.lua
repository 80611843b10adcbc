--[[
facts_page: read the newest facts of an owner before one.

KEYS
  1  order  zset  the ids, which begin with the time
  2  facts  hash  the facts by their ids

ARGV
  1  before  text  an id, or empty  only older facts than this one; empty leaves none out
  2  limit   int   >= 1             facts read at most

RETURNS {id, record, ...}, the newest first
  id      text   of a fact
  record  bytes  the fact
]]
local order = KEYS[1]
local facts = KEYS[2]
local before = ARGV[1]
local limit = tonumber(ARGV[2])

local newest = before == "" and "+" or "(" .. before
local answer = {}
for _, id in ipairs(redis.call("ZREVRANGEBYLEX", order, newest, "-", "LIMIT", 0, limit)) do
  table.insert(answer, id)
  table.insert(answer, redis.call("HGET", facts, id) or "")
end
return answer
