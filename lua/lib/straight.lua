--# include element_text

-- Most appends add a turn to a conversation that exists, and demand nothing. This is the straight
-- way for them: one function, which reads the head once (lib/head.lua says what is in it), and
-- drops a few of the oldest turns where each is one element. Answers what `append` returns, or
-- nil, having written nothing: then it is an append of another kind, or there is an error to tell.
local FEW = 4

local function append_straight(
  turns, summary, turn_id, ttl_ms, max_messages, count, tokens, counter, codec, format, payload
)
  local no, turn, messages, total, first_no, first_turn, messages_before, tokens_before,
    known, ids = string.match(
      redis.call("LINDEX", turns, 0) or "",
      "^head 1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.+)$"
    )
  if not no or count == 0 or ttl_ms == 0 or string.find(ids, turn_id, 1, true) then
    return nil
  end
  local pieces = no - turn ~= first_no - first_turn
  no, turn, messages, total = no + 1, turn + 1, messages + count, total + tokens
  local dropped = 0
  while max_messages > 0 and messages - messages_before > max_messages do
    dropped = dropped + 1
    messages_before, tokens_before = string.match(
      redis.call("LINDEX", turns, dropped) or "", "^w?%[1,%d+,%d+,(%d+),(%d+),"
    )
    if not messages_before or pieces or dropped > FEW then
      return nil
    end
  end
  local may = redis.acl_check_cmd
  if may and not (
    may("LSET", turns) and may("PEXPIRE", turns) and (dropped == 0 or may("LTRIM", turns))
  ) then
    return nil
  end
  if known == "32" then
    ids = string.sub(ids, string.find(ids, " ", 1, true) + 1)
  else
    known = known + 1
  end
  local element = element_text(no, turn, messages, total, count, format, turn_id, counter)
  local head = string.format(
    "head 1 %d %d %d %d %d %d %s %s %s ",
    no, turn, messages, total, first_no + dropped, first_turn + dropped,
    messages_before, tokens_before, known
  ) .. ids .. " " .. turn_id
  redis.call("RPUSH", turns, codec .. element .. payload .. "]")
  if dropped > 0 then
    redis.call("LTRIM", turns, dropped, -1)
  end
  redis.call("LSET", turns, 0, head)
  redis.call("PEXPIRE", turns, ttl_ms)
  redis.call("PEXPIRE", summary, ttl_ms)
  return {
    1, no .. "-" .. turn_id, turn - first_turn - dropped + 1, messages - messages_before,
    total - tokens_before, dropped,
  }
end
