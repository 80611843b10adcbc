-- Takes a conversation off its owner's lists, and notes when, so that a turn which began before
-- does not bring it back. Answers a refusal, having written nothing, or nil.
local function note_cleared(generation, conversations, lives, names, cleared, member)
  local owner, refusal = read_generation(generation)
  refusal = refusal or listing_forbidden(generation, conversations, lives, names)
    or forbidden(cleared, "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE")
  if refusal then
    return refusal
  end
  local number = next_number(owner)
  write_generation(generation, owner)
  redis.call("ZADD", cleared, string.format("%d", number), member)
  redis.call("ZREMRANGEBYSCORE", cleared, "-inf", string.format("%d", number - LONGEST_US))
  redis.call("PEXPIRE", cleared, REMEMBERED_MS)
  take_off(conversations, lives, names, member)
  return nil
end
