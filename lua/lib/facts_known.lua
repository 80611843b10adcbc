-- What becomes known of a fact that is stored: who else says it, and until when it holds. Each
-- function answers "1" done, "0" no such fact, or the id of the fact, and how it is undone.

local function stored(keys, id)
  local text = redis.call("HGET", keys.facts, id)
  return text and parse_fact(text) or nil
end

-- What else has it tells of a fact that cannot be read what it says; its terms are looked for.
local function damaged(keys, id)
  return { norm = norm_of(keys.norms, id), terms = -1 }
end

-- One that later news has closed does not stand for what it says any more.
local function write_fact(keys, change, fact)
  redis.call("HSET", keys.facts, change.id, change.record)
  if fact.expired == OPEN then
    redis.call("HSET", keys.norms, fact.norm, change.id)
  end
end

-- The detail is when it was heard, and the turns that say so.
local function see_fact(keys, change)
  local fact = stored(keys, change.id)
  if not fact then
    return "0"
  end
  local observed, sources = string.match(change.detail, "^(%S+)(.*)$")
  local undo = "seen " .. change.id .. " " .. fact.observed .. add_sources(fact, sources)
  if tonumber(observed) > tonumber(fact.observed) then
    fact.observed = observed
  end
  write_changed(keys.facts, change.id, fact)
  return change.id, undo
end

-- The detail is when it was heard before, and the turns that do not count.
local function unsee_fact(keys, change)
  local fact = stored(keys, change.id)
  if not fact then
    return "0"
  end
  local observed, sources = string.match(change.detail, "^(%S+)(.*)$")
  drop_sources(fact, sources)
  fact.observed = observed
  write_changed(keys.facts, change.id, fact)
  return "1"
end

-- Says until when a fact holds, and when that became known: OPEN opens it again. Where it is
-- closed for the first time, `before` keeps what was believed of its end until then; of a fact
-- that is not closed, both are the same.
local function close_fact(keys, change, spaces)
  local fact = stored(keys, change.id)
  if not fact then
    return "0"
  end
  local to, expired, by, before = string.match(change.detail, "^(%S+) (%S+) (%S+) (%S+)$")
  local undo = table.concat(
    { "closed", change.id, fact.to, fact.expired, fact.by, fact.before }, " "
  )
  if expired == OPEN then
    before = to
  elseif before == "-" then
    before = fact.expired == OPEN and fact.to or fact.before
  end
  fact.to, fact.expired, fact.by, fact.before = to, expired, by, before
  if expired == OPEN then
    redis.call("HSETNX", keys.norms, fact.norm, change.id)
  else
    free_norm(keys.norms, fact.norm, change.id)
  end
  write_changed(keys.facts, change.id, fact)
  for place, space in ipairs(spaces) do
    put_times(space, change.vectors[place], change.id, fact)
  end
  return "1", undo
end
