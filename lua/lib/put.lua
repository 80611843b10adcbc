-- Puts a new element at the end of the list, drops so many of the oldest, writes the head, and
-- starts the time to live anew. Answers a refusal, having written nothing, or nil.
local function put_element(turns, summary, head, element, dropped, ttl_ms)
  local created = head.no == 1
  local renewal = ttl_ms > 0 and "PEXPIRE" or "PERSIST"
  local refusal
  if created then
    refusal = forbidden(turns, "DEL", renewal)
  elseif dropped == 0 then
    refusal = forbidden(turns, "LSET", renewal)
  else
    refusal = forbidden(turns, "LTRIM", "LPUSH", renewal)
  end
  if refusal then
    return refusal
  end
  if created then
    redis.call("RPUSH", turns, head_text(head), element)
    redis.call("DEL", summary) -- of an earlier conversation under this id, which was evicted
  else
    redis.call("RPUSH", turns, element)
    if dropped == 0 then
      redis.call("LSET", turns, 0, head_text(head))
    else
      redis.call("LTRIM", turns, dropped + 1, -1)
      redis.call("LPUSH", turns, head_text(head))
    end
  end
  if ttl_ms > 0 then
    redis.call("PEXPIRE", turns, ttl_ms)
    redis.call("PEXPIRE", summary, ttl_ms)
  else
    redis.call("PERSIST", turns)
    redis.call("PERSIST", summary)
  end
  return nil
end
