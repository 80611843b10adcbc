-- Answers the owner, as read_generation does, or nil and a refusal while an erasure is at work.
local function read_open(key)
  local owner, refusal = read_generation(key)
  if owner and owner.closed_until > owner.now then
    return nil, "ERASED closed"
  end
  return owner, refusal
end

-- The same, and a refusal where what began at this number must not be written any more.
-- `cleared` and `member` are nil where no conversation is written to.
local function still_begun(key, cleared, member, began)
  local owner, refusal = read_open(key)
  if not owner then
    return nil, refusal
  end
  if owner.erased >= began then
    -- Where no erasure has ended, and none was given up, the key was made anew at that number.
    local is_lost = owner.ended == 0 and owner.closed_until == 0
    return nil, is_lost and "ERASED lost" or "ERASED owner"
  end
  if owner.now_us - began > LONGEST_US then
    return nil, "ERASED late"
  end
  local number = cleared and redis.call("ZSCORE", cleared, member)
  if number and tonumber(number) >= began then
    return nil, "ERASED conversation"
  end
  return owner
end
