-- Where vectors lie, by engine. A space is "<engine>:<digest>", and for vector sets
-- ":<quantisation>:<m>:<ef>" behind it. Its key for a fact:
--   plain      hash of the owner   from an id to five times, 16 bytes of digests, the vector
--   vectorset  set of the owner    an element for each id, with the times as attributes
--   search     hash of the fact    which the server's index reads
-- The times of `plain` are created, from, to, expired and before, each in 8 bytes, the highest
-- first; of which the last three change when a fact is closed.
local FIRST_TO_CHANGE, LAST_TO_CHANGE = 17, 40
-- What is added to a time so that none is negative: 2^46; before the year 1.
local SHIFT = 70368744177664

local function engine_of(space)
  return string.match(space, "^%w+")
end

local function attributes(fact)
  return string.format(
    '{"n":%s,"f":%s,"t":%s,"x":%s,"b":%s,"k":"%s","c":"%s"}',
    fact.created, fact.from, fact.to, fact.expired, fact.before, fact.kind, fact.conversation
  )
end

local function packed_time(ms)
  local left, bytes = tonumber(ms) + SHIFT, {}
  for place = 8, 1, -1 do
    bytes[place] = left % 256
    left = math.floor(left / 256)
  end
  return string.char(unpack(bytes))
end

local function put_vector(space, key, id, fact, owner, vector)
  local engine = engine_of(space)
  if engine == "plain" then
    redis.call("HSET", key, id, vector)
  elseif engine == "vectorset" then
    local quant, m, ef = string.match(space, "^%w+:%w+:(%w+):(%d+):(%d+)$")
    redis.call(
      "VADD", key, "FP32", vector, id, quant, "EF", ef, "SETATTR", attributes(fact), "M", m
    )
  else
    redis.call(
      "HSET", key, "u", owner, "c", fact.conversation, "k", fact.kind, "known", fact.created,
      "from", fact.from, "to", fact.to, "expired", fact.expired, "before", fact.before,
      "emb", vector
    )
  end
end

-- Writes when a fact holds. One that has no vector in this space gets none.
local function put_times(space, key, id, fact)
  local engine = engine_of(space)
  if engine == "plain" then
    local value = redis.call("HGET", key, id)
    if value then
      local times = packed_time(fact.to) .. packed_time(fact.expired) .. packed_time(fact.before)
      value = string.sub(value, 1, FIRST_TO_CHANGE - 1) .. times
        .. string.sub(value, LAST_TO_CHANGE + 1)
      redis.call("HSET", key, id, value)
    end
  elseif engine == "vectorset" then
    if redis.call("EXISTS", key) == 1 then
      redis.call("VSETATTR", key, id, attributes(fact))
    end
  elseif redis.call("EXISTS", key) == 1 then
    redis.call("HSET", key, "to", fact.to, "expired", fact.expired, "before", fact.before)
  end
end

-- Answers how many there were.
local function drop_vector(space, key, id)
  local engine = engine_of(space)
  if engine == "plain" then
    return redis.call("HDEL", key, id)
  elseif engine == "vectorset" then
    -- The command is asked only where there is a set: another server may not know it.
    return redis.call("EXISTS", key) == 1 and tonumber(redis.call("VREM", key, id)) or 0
  end
  return redis.call("DEL", key)
end
