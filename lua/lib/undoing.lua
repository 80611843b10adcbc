-- The ids that a head knows up to a number, and how many they are.
local function known_ids(head, last_no)
  local ids = {}
  for id in string.gmatch(head.ids, "%S+") do
    ids[#ids + 1] = id
  end
  local known = math.max(#ids - (head.no - last_no), 0)
  return table.concat(ids, " ", 1, known), known
end

-- Answers the owner, and a refusal where note_undone would not come to its end.
local function undoing_owner(generation, cleared)
  local owner, refusal = read_generation(generation)
  return owner, refusal or forbidden(cleared, "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE")
end

-- Notes that all turns of a conversation were undone: without any it looks like one that has
-- expired. Under a name of its own, since a turn that is under way is stored all the same;
-- where there is no owner, nothing.
local function note_undone(cleared, owner, member)
  if not owner then
    return
  end
  redis.call("ZADD", cleared, string.format("%d", owner.now_us), member .. ":undone")
  redis.call("ZREMRANGEBYSCORE", cleared, "-inf", string.format("%d", owner.now_us - LONGEST_US))
  redis.call("PEXPIRE", cleared, REMEMBERED_MS)
end
