--[[
facts_read: read facts of an owner by their ids, and what belongs to them.

KEYS
  1  facts   hash   the facts by their ids
  2  used    zset   when facts were last found
  3  order   zset   the ids, which begin with the time
  4  vector  text*  where the vectors of the first facts lie; the others are read without

ARGV
  1  space   text   where the vectors lie
  2  around  int    0 or 1: 1 says what stands before and after each
  3  id      text*  of the facts

RETURNS {record, used_ms, vector, before, after, ...}, five for each id
  record   bytes  the fact; empty where there is none, and then all others are
  used_ms  text   milliseconds; empty where it was never found
  vector   bytes  as its engine keeps it; empty where there is none
  before, after  text  the ids of the facts that were stored next to it; empty where none was
]]
--# include facts_vectors
local facts = KEYS[1]
local used = KEYS[2]
local order = KEYS[3]
local first_of_vector = 4
local space = ARGV[1]
local around = ARGV[2] == "1"
local first_of_id = 3

local function read_vector(key, id)
  local engine = engine_of(space)
  if engine == "plain" then
    return redis.call("HGET", key, id)
  elseif engine == "search" then
    return redis.call("HGET", key, "emb")
  end
  local reply = redis.call("EXISTS", key) == 1 and redis.call("VEMB", key, id, "RAW")
  return reply and reply[2]
end

local function next_to(id)
  local rank = redis.call("ZRANK", order, id)
  if not rank then
    return "", ""
  end
  local near = redis.call("ZRANGE", order, math.max(rank - 1, 0), rank + 1)
  if rank == 0 then
    return "", near[2] or ""
  end
  return near[1], near[3] or ""
end

local answer = {}
for at = first_of_id, #ARGV do
  local id = ARGV[at]
  local record = redis.call("HGET", facts, id)
  local used_ms, vector, before, after
  if record then
    local key = KEYS[first_of_vector + at - first_of_id]
    used_ms = redis.call("ZSCORE", used, id)
    vector = key and read_vector(key, id)
    if around then
      before, after = next_to(id)
    end
  end
  local parts = { record or "", used_ms or "", vector or "", before or "", after or "" }
  for place, part in ipairs(parts) do
    answer[(at - first_of_id) * 5 + place] = part
  end
end
return answer
