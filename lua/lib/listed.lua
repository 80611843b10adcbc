-- The lists of an owner: the conversations by their last write, by the end of their lives, and
-- their names. They live longer than what is listed in them.

-- Notes until when a conversation lives that is listed; with 0, it is for ever.
local function note_life(lives, member, now, ttl_ms)
  redis.call("ZADD", lives, ttl_ms > 0 and string.format("%.0f", now + ttl_ms) or "+inf", member)
end

-- Lets a list live longer than this life, given what it had left before it was written to.
local function prolong(key, left_ms, ttl_ms)
  if left_ms ~= -1 and ttl_ms == 0 then
    redis.call("PERSIST", key)
  elseif left_ms ~= -1 and left_ms < ttl_ms + REMEMBERED_MS / 2 then
    redis.call("PEXPIRE", key, ttl_ms + REMEMBERED_MS)
  end
end

-- Notes a conversation that is not listed, as it has no turn: it is waited for.
local function note_waiting(lives, member, now, ttl_ms)
  local left_ms = redis.call("PTTL", lives)
  redis.call("ZADD", lives, "NX", string.format("%d", now + ttl_ms), member)
  prolong(lives, left_ms, ttl_ms)
end

local function take_off(conversations, lives, names, member)
  redis.call("ZREM", conversations, member)
  redis.call("ZREM", lives, member)
  redis.call("HDEL", names, member)
end

-- Whether a conversation without turns was emptied by an undo (note_undone), within a day: then
-- its title waits for the turn that comes instead.
local function is_undone(conversations, cleared, member)
  local undone = tonumber(redis.call("ZSCORE", cleared, member .. ":undone") or 0)
  local written = tonumber(redis.call("ZSCORE", conversations, member) or 0)
  local time = redis.call("TIME")
  return undone >= written and undone > time[1] * 1000000 + time[2] - LONGEST_US
end

-- Puts a conversation at the head of its owner's lists, and takes off some of those that have
-- ended a day ago. `owner` is what still_begun answered; `is_new` says that a title which is
-- there is of an earlier conversation under this id.
local function list_it(generation, owner, conversations, lives, names, member, name, ttl_ms, is_new)
  local number = string.format("%d", next_number(owner))
  local left_ms = {}
  for place, key in ipairs({ conversations, lives, names }) do
    left_ms[place] = redis.call("PTTL", key)
  end
  write_generation(generation, owner)
  redis.call("ZADD", conversations, number, member)
  note_life(lives, member, owner.now, ttl_ms)
  redis.call(is_new and "HSET" or "HSETNX", names, member, name)
  for place, key in ipairs({ conversations, lives, names }) do
    prolong(key, left_ms[place], ttl_ms)
  end
  local ended = string.format("%d", owner.now - REMEMBERED_MS / 2)
  for _, gone in ipairs(redis.call("ZRANGEBYSCORE", lives, "-inf", ended, "LIMIT", 0, 2)) do
    take_off(conversations, lives, names, gone)
  end
end

-- Answers a refusal where an ACL forbids the user a command of list_it, as `forbidden` does.
local function listing_forbidden(generation, conversations, lives, names)
  return forbidden(generation, "SET")
    or forbidden(conversations, "ZADD", "ZREM", "PEXPIRE", "PERSIST")
    or forbidden(lives, "ZADD", "ZRANGEBYSCORE")
    or forbidden(names, "HSET", "HSETNX", "HDEL")
end
