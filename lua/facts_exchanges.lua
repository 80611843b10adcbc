--[[
facts_exchanges: count the exchanges among the newest facts of an owner before one.

KEYS
  1  order  zset  the ids, which begin with the time
  2  facts  hash  the facts by their ids

ARGV
  1  before  text  an id, or empty  only older facts than this one; empty leaves none out
  2  limit   int   >= 1             facts looked at, at most

RETURNS {exchanges, oldest}
  exchanges  int   how many there were, whatever else of them can be read
  oldest     text  the id that was looked at last; empty where there are no older ones
]]
local order = KEYS[1]
local facts = KEYS[2]
local before = ARGV[1]
local limit = tonumber(ARGV[2])

local newest = before == "" and "+" or "(" .. before
local ids = redis.call("ZREVRANGEBYLEX", order, newest, "-", "LIMIT", 0, limit)
local exchanges = 0
for _, id in ipairs(ids) do
  local text = redis.call("HGET", facts, id) or ""
  if string.match(text, "^%d+" .. string.rep(" %S+", 7) .. " exchange ") then
    exchanges = exchanges + 1
  end
end
return { exchanges, #ids == limit and ids[limit] or "" }
