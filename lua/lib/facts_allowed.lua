-- Whether an ACL lets a commit come to its end: all that its changes can come to run is asked
-- for before the first write, and nothing else.
local SEEN = { facts = { "HGET", "HSET" } }
local KNOWN = { facts = { "HGET", "HSET", "HEXISTS" }, norms = { "HGET" } }
local NEW = {
  facts = { "HGET", "HSET", "HEXISTS" }, norms = { "HGET", "HSET" },
  postings = { "HGET" }, order = { "ZADD" },
}
local CLOSED = { facts = { "HGET", "HSET" }, norms = { "HGET", "HDEL" } }
local OPENED = { facts = { "HGET", "HSET" }, norms = { "HSETNX" } }
local CHANGED = { facts = { "HGET", "HSET" }, norms = { "HGET", "HDEL", "HSET" } }
local REWRITTEN = {
  facts = CHANGED.facts, norms = CHANGED.norms, postings = { "HGET", "HDEL", "HGETALL" },
}
local REMOVED = {
  facts = { "HGET", "HDEL" }, norms = { "HGET", "HDEL", "HGETALL" }, order = { "ZREM" },
  used = { "ZREM" }, uses = { "HDEL" }, postings = { "HGET", "HDEL", "HGETALL" },
}
local PUT = { plain = { "HSET" }, vectorset = { "VADD" }, search = { "HSET" } }
local TIMED = {
  plain = { "HGET", "HSET" }, vectorset = { "EXISTS", "VSETATTR" }, search = { "EXISTS", "HSET" },
}
local DROPPED = { plain = { "HDEL" }, vectorset = { "EXISTS", "VREM" }, search = { "DEL" } }
local NOTHING = { plain = {}, vectorset = {}, search = {} }

-- Answers what a change runs on the keys of the owner, on the vectors of the first space, and
-- on those of the others.
local function commands_of(change)
  if change.kind == "add" and change.vector ~= "" then
    return NEW, PUT, NOTHING
  elseif change.kind == "add" then
    return KNOWN, NOTHING, NOTHING
  elseif change.kind == "remove" or change.kind == "discard" then
    return REMOVED, DROPPED, DROPPED
  elseif change.kind == "close" then
    local opens = string.match(change.detail, "^%S+ (%S+)") == OPEN
    return opens and OPENED or CLOSED, TIMED, TIMED
  elseif change.kind ~= "replace" then
    return SEEN, NOTHING, NOTHING
  elseif change.vector == "" then
    return CHANGED, TIMED, TIMED
  end
  return REWRITTEN, PUT, DROPPED
end

-- Answers a refusal where an ACL forbids the user a command, as `forbidden` does.
local function commit_forbidden(keys, changes, spaces, vectors, ttl_ms, cursor, operation)
  local asked, refusal = {}, nil
  local function ask(name, key, commands)
    for _, command in ipairs(commands) do
      if not asked[name .. command] then
        asked[name .. command] = true
        refusal = refusal or forbidden(key, command)
      end
    end
  end
  local renewal = { ttl_ms > 0 and "PEXPIRE" or ttl_ms == 0 and "PERSIST" or nil }
  for name, key in pairs(keys) do
    ask(name, key, renewal)
  end
  ask("postings", keys.postings, { "HGET", "HSET", "HINCRBY" })
  ask("cursors", keys.cursors, cursor ~= "" and cursor ~= "=" and { "HSET" } or {})
  ask("ops", keys.ops, operation ~= "" and { "XADD" } or {})
  for place, space in ipairs(spaces) do
    local engine = engine_of(space)
    ask("home" .. place, KEYS[vectors + place - 1], renewal)
    for _, change in ipairs(changes) do
      local owned, first, others = commands_of(change)
      for name, commands in pairs(owned) do
        ask(name, keys[name], commands)
      end
      ask("vector" .. place, change.vectors[place], (place == 1 and first or others)[engine])
      if engine == "search" then
        ask("vector" .. place, change.vectors[place], renewal)
        ask("postings", keys.postings, ttl_ms > 0 and { "HSETNX" } or {})
      end
    end
  end
  return refusal
end
