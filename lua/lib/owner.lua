-- What was begun and erased of an owner, as one text beside all that the owner has:
--   generation 1 <number> <erased> <ended> <closed_until_ms> <removed: four counts>
-- `number` is the newest that was given out: the server's clock in microseconds, or one more
-- than the one before, whichever is larger. What is going to write for the owner is given one
-- when it begins, and is refused if the owner was erased at a later one (`erased`). While an
-- erasure is at work, until `closed_until_ms`, nothing is written; 0 is that none is at work,
-- and `ended` is when the last one ended. The counts are of the conversations, turns, messages
-- and keys that the newest erasure has removed.
local GENERATION = "^generation 1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$"
-- How long it may take from the beginning to the last write, in microseconds; and how long
-- begun, erased and cleared are remembered, in milliseconds: twice as long, for all clocks.
local LONGEST_US = 86400000000
local REMEMBERED_MS = 172800000

-- Answers what is known of an owner as a table, or nil and a refusal. Where there is no key,
-- or not one of ours, it may have been lost: as far as one knows, all was erased just now.
local function read_generation(key)
  local time = redis.call("TIME")
  local now_us = time[1] * 1000000 + time[2]
  local owner = {
    now_us = now_us, now = math.floor(now_us / 1000), number = now_us, erased = now_us,
    ended = 0, closed_until = 0, conversations = 0, turns = 0, messages = 0, keys = 0,
  }
  local text = redis.call("GET", key) or ""
  local number, erased, ended, closed_until, conversations, turns, messages, keys =
    string.match(text, GENERATION)
  if not number then
    local format = string.match(text, "^generation (%d+) ")
    if format and format ~= "1" then
      return nil, "FORMAT " .. format
    end
    return owner
  end
  owner.number, owner.erased = tonumber(number), tonumber(erased)
  owner.ended, owner.closed_until = tonumber(ended), tonumber(closed_until)
  owner.conversations, owner.turns = tonumber(conversations), tonumber(turns)
  owner.messages, owner.keys = tonumber(messages), tonumber(keys)
  return owner
end

-- Gives out a number: no later one of this owner is smaller.
local function next_number(owner)
  owner.number = math.max(owner.number + 1, owner.now_us)
  return owner.number
end

-- For what `takes_away`, the old text goes first: a full server refuses what may take room, but
-- not after another write of the same script (scriptVerifyOOM in Redis' script.c).
local function write_generation(key, owner, takes_away)
  if takes_away then
    redis.call("UNLINK", key)
  end
  local text = string.format(
    "generation 1 %d %d %d %d %d %d %d %d",
    owner.number, owner.erased, owner.ended, owner.closed_until,
    owner.conversations, owner.turns, owner.messages, owner.keys
  )
  redis.call("SET", key, text, "PX", REMEMBERED_MS)
end
