-- Answers the owner, or nil and a refusal where note_cleared would not come to its end.
local function clearing_owner(generation, conversations, lives, names, cleared)
  local owner, refusal = read_generation(generation)
  refusal = refusal or listing_forbidden(generation, conversations, lives, names)
    or forbidden(cleared, "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE")
  if refusal then
    return nil, refusal
  end
  return owner
end

-- Takes a conversation off its owner's lists, and notes when, so that a turn which began before
-- does not bring it back.
local function note_cleared(generation, owner, conversations, lives, names, cleared, member)
  local number = next_number(owner)
  write_generation(generation, owner)
  redis.call("ZADD", cleared, string.format("%d", number), member)
  redis.call("ZREMRANGEBYSCORE", cleared, "-inf", string.format("%d", number - LONGEST_US))
  redis.call("PEXPIRE", cleared, REMEMBERED_MS)
  take_off(conversations, lives, names, member)
end
