-- Writes the header that src/turnstore/_element.py describes; the payload follows it.
local function header_text(head, count, format, turn_id, counter)
  local time = redis.call("TIME")
  return string.format(
    '[1,%d,%d,%d,%d,%d,%d,"%s","%s","%s",',
    head.no, head.turn, head.messages, head.tokens,
    time[1] * 1000 + math.floor(time[2] / 1000), count, format, turn_id, counter
  )
end

-- Answers a refusal where an ACL forbids the user a command of put_element but the first.
local function put_forbidden(turns, head, dropped, ttl_ms)
  local renewal = ttl_ms > 0 and "PEXPIRE" or "PERSIST"
  if head.no == 1 then
    return forbidden(turns, "DEL", renewal)
  elseif dropped == 0 then
    return forbidden(turns, "LSET", renewal)
  end
  return forbidden(turns, "LTRIM", "LPUSH", renewal)
end

-- Puts a new element at the end of the list, drops so many of the oldest, writes the head, and
-- starts the time to live anew.
local function put_element(turns, summary, head, element, dropped, ttl_ms)
  if head.no == 1 then
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
  set_life(turns, summary, ttl_ms)
end
