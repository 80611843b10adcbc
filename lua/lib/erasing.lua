-- One erasure at a time is told from the next by the number at which it was begun.
local CLOSED_MS = 10000
local BATCH = 100

-- Keeps everything of the owner closed to writers for some seconds more.
local function close(key, owner)
  owner.closed_until = owner.now + CLOSED_MS
  write_generation(key, owner)
end

-- Tells whether it is still closed; and if not, whether a later erasure has done all, and opened
-- it. Neither is so where two steps were too far apart, and writers may have come in between.
local function is_closed(owner, number)
  return owner.closed_until > owner.now, owner.closed_until == 0 and owner.erased > number
end

-- The conversations to be erased next.
local function next_members(conversations)
  return redis.call("ZRANGE", conversations, 0, BATCH - 1)
end
