-- One erasure at a time is told from the next by the number at which it was begun.
local CLOSED_MS = 10000
local BATCH = 100

-- Keeps everything of the owner closed to writers for some seconds more.
local function close(key, owner)
  owner.closed_until = owner.now + CLOSED_MS
  write_generation(key, owner, true)
end

-- Answers what became of an erasure since its last step: 1 nobody could write; 2 a later one
-- has deleted all, and ended; 0 the step is too long ago, and writers may have come in.
local function state_of(owner, number)
  if owner.ended > number then
    return 2
  end
  return owner.closed_until > owner.now and 1 or 0
end

-- The conversations to be erased next; `lives` knows also those that have no turn yet.
local function next_members(conversations, lives)
  local members = redis.call("ZRANGE", lives, 0, BATCH - 1)
  return #members > 0 and members or redis.call("ZRANGE", conversations, 0, BATCH - 1)
end
