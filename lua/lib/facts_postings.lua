-- The lexical index of an owner: a hash from a term to the facts that have it, a record of 15
-- bytes for each: the id (12), how often it has the term (1), how many terms it has (2). The
-- fields that begin with # are no terms: #n facts and #l terms in all, since #s, and others.
local RECORD_BYTES, ID_BYTES = 15, 12

-- Calls a function with each term of a packed list and what follows the term: two bytes for
-- the length of the term, the term, and `extra` bytes.
local function each_term(list, extra, act)
  local at = 1
  while at <= #list do
    local high, low = string.byte(list, at, at + 1)
    local stop = at + 1 + high * 256 + low
    act(string.sub(list, at + 2, stop), string.sub(list, stop + 1, stop + extra))
    at = stop + 1 + extra
  end
end

-- Calls a function with each term that there is, and its records.
local function each_posted(key, act)
  local all = redis.call("HGETALL", key)
  for place = 1, #all, 2 do
    if string.sub(all[place], 1, 1) ~= "#" then
      act(all[place], all[place + 1])
    end
  end
end

local function count_fact(key, facts, length)
  redis.call("HINCRBY", key, "#n", facts)
  redis.call("HINCRBY", key, "#l", string.format("%d", length)) -- "-0" would be no integer
end

-- Puts a fact into the index: a record for each of its terms.
local function post(key, list, length)
  each_term(list, RECORD_BYTES, function(term, record)
    redis.call("HSET", key, term, (redis.call("HGET", key, term) or "") .. record)
  end)
  count_fact(key, 1, length)
end

-- Notes when the first fact was stored: by the clock, which may have been ahead before.
local function note_stored(key, created)
  local first = redis.call("HGET", key, "#s")
  if not first or tonumber(created) < tonumber(first) then
    redis.call("HSET", key, "#s", created)
  end
end
