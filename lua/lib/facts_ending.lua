-- What a commit writes beside the facts: what it answered, the log, and how long all of it lives.
local ANSWERS_KEPT = 8
local OPERATIONS_KEPT = 200

local function words(text)
  local found = {}
  for word in string.gmatch(text, "%S+") do
    table.insert(found, word)
  end
  return found
end

-- The answers of the newest commits, so that one which is sent again changes nothing.
local function answers_of(key, token)
  local known = redis.call("HGET", key, "#c")
  local answers = known and string.match(" " .. known, " " .. token .. "=(%S*)")
  return answers and words((string.gsub(answers, ",", " ")))
end

local function remember_answers(key, token, answers)
  local known = words(redis.call("HGET", key, "#c") or "")
  table.insert(known, token .. "=" .. table.concat(answers, ","))
  local first = math.max(#known - ANSWERS_KEPT + 1, 1)
  redis.call("HSET", key, "#c", table.concat(known, " ", first))
end

local function log_operation(key, operation, note, undo)
  if operation == "" then
    return
  end
  redis.call(
    "XADD", key, "MAXLEN", "~", OPERATIONS_KEPT, "*", "operation", operation, "note", note,
    "undo", table.concat(undo, "\n")
  )
end

local function renew(keys, ttl_ms, spaces, vectors)
  for place in ipairs(spaces) do
    keys[place] = KEYS[vectors + place - 1]
  end
  for _, key in pairs(ttl_ms >= 0 and keys or {}) do
    set_life(ttl_ms, key)
  end
end

-- Documents of a search index have a key each, too many to renew all of them with each commit:
-- they live twice as long, and are renewed when half of that is over. #e says until when all
-- of them live; it is missing where they live for ever. `held` are the facts before the commit.
local function renew_documents(key, changes, spaces, ttl_ms, now, held)
  local written = false
  for place, space in ipairs(spaces) do
    for _, change in ipairs(ttl_ms >= 0 and engine_of(space) == "search" and changes or {}) do
      set_life(2 * ttl_ms, change.vectors[place])
      written = true
    end
  end
  if written and ttl_ms > 0 then
    local lives = tonumber(held or 0) == 0 and now + 2 * ttl_ms or 0
    redis.call(lives > 0 and "HSET" or "HSETNX", key, "#e", string.format("%d", lives))
  end
end

-- Tells whether there was nothing of what was to be changed, and no cursor moves.
local function changes_nothing(answers, conversation, cursor)
  for _, answer in ipairs(answers) do
    if answer ~= "0" then
      return false
    end
  end
  return conversation == "" or cursor == "="
end

-- Writes which spaces the vectors lie in, if there are any, and where a cursor stands; = leaves
-- it.
local function write_places(keys, spaces, conversation, cursor)
  if tonumber(redis.call("HGET", keys.postings, "#n") or 0) > 0 then
    redis.call("HSET", keys.postings, "#v", table.concat(spaces, " "))
  end
  redis.call("HINCRBY", keys.postings, "#r", 1)
  if conversation ~= "" and cursor ~= "=" then
    redis.call("HSET", keys.cursors, conversation, cursor)
  end
end

-- Makes the answer of a commit.
local function done(key, answers, ttl_ms, now)
  local lives = redis.call("HGET", key, "#e")
  local is_short = lives and ttl_ms >= 0 and (ttl_ms == 0 or tonumber(lives) < now + ttl_ms)
  return { "done", is_short and 1 or 0, unpack(answers) }
end
