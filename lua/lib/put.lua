-- Counts a new element in the head: of a turn of its own, or of the newest one.
local function count_in(head, turn_id, count, tokens, continues)
  head.no = head.no + 1
  head.turn = continues and head.turn or head.turn + 1
  head.messages = head.messages + count
  head.tokens = head.tokens + tokens
  add_id(head, turn_id)
end

-- Makes the text of a new element, whose totals the head says already, up to its messages.
local function header_text(head, count, format, turn_id, counter)
  return element_text(
    head.no, head.turn, head.messages, head.tokens, count, format, turn_id, counter
  )
end

-- Answers a refusal where an ACL forbids the user a command of put_element but the first.
local function put_forbidden(turns, head, dropped, ttl_ms)
  local renewal = life_command(ttl_ms)
  if head.no == 1 then
    return forbidden(turns, "DEL", renewal)
  elseif dropped == 0 then
    return forbidden(turns, "LSET", renewal)
  end
  return forbidden(turns, "LTRIM", "LSET", renewal)
end

-- Puts a new element at the end of the list, drops so many of the oldest, writes the head, and
-- starts the time to live anew.
local function put_element(turns, summary, head, element, dropped, ttl_ms)
  if head.no == 1 then
    redis.call("RPUSH", turns, head_text(head), element)
    redis.call("DEL", summary) -- of an earlier conversation under this id, which was evicted
  else
    redis.call("RPUSH", turns, element)
    if dropped > 0 then
      redis.call("LTRIM", turns, dropped, -1)
    end
    redis.call("LSET", turns, 0, head_text(head)) -- where the newest that goes still stands
  end
  set_life(ttl_ms, turns, summary)
end

-- What `append` answers where the head says what the conversation holds now; `replace` answers
-- `gone` as well.
local function append_answer(head, added, at_revision, dropped, gone)
  return {
    added, at_revision, turns_held(head), messages_held(head),
    head.tokens - head.tokens_before, dropped, gone,
  }
end
