-- Answers the header of the element that a revision names, with a refusal where it cannot be
-- read: nil where it is not held, or is another one now.
local function element_at(turns, head, named)
  local no, turn_id = string.match(named, "^(%d+)%-(.+)$")
  no = tonumber(no)
  if not no or no < head.first_no or no > head.no then
    return nil
  end
  local header, refusal = read_header(turns, no - head.first_no + 1)
  return header and header.no == no and header.turn_id == turn_id and header or nil, refusal
end

-- Takes a head back to an element: changes the table alone, and answers a refusal. The ids of
-- what is undone go: a retry of such an append is a new turn. Older ones come back, so that as
-- many are known as before.
local function undo_to(turns, head, kept)
  local ids = {}
  for id in string.gmatch(head.ids, "%S+") do
    ids[#ids + 1] = id
  end
  local known = math.max(#ids - (head.no - kept.no), 0)
  local text = table.concat(ids, " ", 1, known)
  for no = kept.no - known, math.max(kept.no - IDS_KEPT + 1, head.first_no), -1 do
    local header, refusal = read_header(turns, no - head.first_no + 1)
    if refusal then
      return refusal
    end
    text = header.turn_id .. (text == "" and "" or " ") .. text
    known = known + 1
  end
  head.ids, head.known = text, known
  head.no, head.turn = kept.no, kept.turn
  head.messages, head.tokens = kept.messages, kept.tokens
  return nil
end

-- Takes a head back to what stands before an element; it may be the oldest that is held.
local function undo_before(turns, head, first)
  if first.no > head.first_no then
    local kept, refusal = read_header(turns, first.no - head.first_no)
    return refusal or undo_to(turns, head, kept)
  end
  return undo_to(turns, head, {
    no = head.first_no - 1, turn = head.first_turn - 1,
    messages = head.messages_before, tokens = head.tokens_before,
  })
end

-- Answers a refusal where note_undone would not come to its end.
local function undoing_forbidden(cleared)
  return forbidden(cleared, "ZADD", "ZREMRANGEBYSCORE", "PEXPIRE")
end

-- Notes that all turns of a conversation were undone, so long before now, or before its last
-- write, whose number may be ahead of the clock: without any it looks like one that has expired.
-- Under a name of its own, since a turn that is under way is stored all the same; where there is
-- no owner, nothing.
local function note_undone(cleared, owner, member, ago_us)
  if not owner then
    return
  end
  local number = math.max(owner.number, owner.now_us) - ago_us
  redis.call("ZADD", cleared, string.format("%d", number), member .. ":undone")
  redis.call("ZREMRANGEBYSCORE", cleared, "-inf", string.format("%d", owner.now_us - LONGEST_US))
  redis.call("PEXPIRE", cleared, REMEMBERED_MS)
end
