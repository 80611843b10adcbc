--[[
facts_read: read facts of an owner by their ids, and what belongs to them.

KEYS
  1  facts   hash   the facts by their ids
  2  used    zset   when facts were last found
  3  order   zset   the ids, which begin with the time
  4  vector  text*  where vectors lie: one key for all, or one for each in an index

ARGV
  1  space    text   where the vectors lie
  2  vectors  int    the first so many facts are read with their vectors
  3  times    int    0 or 1: 1 says when each was last found
  4  around   int    0 or 1: 1 says what stands before and after each
  5  id       text*  of the facts; 2000 at most

RETURNS {records, vectors, used, around}, each a list in the order of the ids
  records  bytes  the fact; nothing where there is none
  vectors  bytes  of the first facts, as their engine keeps it; nothing where there is none
  used     text   milliseconds; nothing where it was never found; empty without `times`
  around   text   two for each: the ids of the facts that were stored before and after it; empty
                  where there is none, and without `around`
]]
--# include facts_vectors
local facts = KEYS[1]
local used = KEYS[2]
local order = KEYS[3]
local first_of_vector = 4
local space = ARGV[1]
local vectors = tonumber(ARGV[2])
local times = ARGV[3] == "1"
local around = ARGV[4] == "1"
local first_of_id = 5

-- The most facts of an owner whose order is read as a whole, for each fact that is wanted.
local READ_WHOLE = 8

local function read_vectors()
  local engine, key, found = engine_of(space), KEYS[first_of_vector], {}
  if vectors == 0 or (engine == "vectorset" and redis.call("EXISTS", key) == 0) then
    return found
  elseif engine == "plain" then
    return redis.call("HMGET", key, unpack(ARGV, first_of_id, first_of_id + vectors - 1))
  end
  for at = 1, vectors do
    if engine == "search" then
      found[at] = redis.call("HGET", KEYS[first_of_vector + at - 1], "emb")
    else
      local reply = redis.call("VEMB", key, ARGV[first_of_id + at - 1], "RAW")
      found[at] = reply and reply[2]
    end
  end
  return found
end

-- Gives a function that says what stands before and after an id.
local function neighbours(wanted)
  if redis.call("ZCARD", order) <= READ_WHOLE * wanted then
    local ids, ranks = redis.call("ZRANGE", order, 0, -1), {}
    for rank, id in ipairs(ids) do
      ranks[id] = rank
    end
    return function(id)
      local rank = ranks[id]
      return rank and ids[rank - 1] or "", rank and ids[rank + 1] or ""
    end
  end
  return function(id)
    local rank = redis.call("ZRANK", order, id)
    local near = rank and redis.call("ZRANGE", order, math.max(rank - 1, 0), rank + 1) or {}
    if rank == 0 then
      return "", near[2] or ""
    end
    return near[1] or "", near[3] or ""
  end
end

local count = #ARGV - first_of_id + 1
if count == 0 then
  return { {}, {}, {}, {} }
end
local beside = {}
local next_to = around and neighbours(count)
for at = 1, around and count or 0 do
  beside[2 * at - 1], beside[2 * at] = next_to(ARGV[first_of_id + at - 1])
end
return {
  redis.call("HMGET", facts, unpack(ARGV, first_of_id)), read_vectors(),
  times and redis.call("ZMSCORE", used, unpack(ARGV, first_of_id)) or {}, beside,
}
