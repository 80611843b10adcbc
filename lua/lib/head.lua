-- The head: element 0 of every list. It holds what an append has to know, in some 400
-- bytes, so that no script reads a payload only to learn a number:
--   head 1 <no> <turn> <messages> <tokens>                the newest element's header
--   <first_no> <first_turn> <messages_before> <tokens_before>   the oldest, and before it
--   <known> <turn id> ...                                 the newest 32 ids: how many, which
-- Element number n stands at index n - first_no + 1 of the list.
local HEAD = "^head 1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.+)$"
local IDS_KEPT = 32

-- Answers the head as a table (of an empty conversation where there is no list), or nil
-- and a refusal.
local function read_head(key)
  local text = redis.call("LINDEX", key, 0)
  if not text then
    return {
      no = 0, turn = 0, messages = 0, tokens = 0,
      first_no = 1, first_turn = 1, messages_before = 0, tokens_before = 0,
      known = 0, ids = "",
    }
  end
  local no, turn, messages, tokens, first_no, first_turn, messages_before, tokens_before,
    known, ids = string.match(text, HEAD)
  if not no then
    local format = string.match(text, "^head (%d+) ")
    if format and format ~= "1" then
      return nil, "FORMAT " .. format
    end
    return nil, "CORRUPT the list does not begin with a head of ours"
  end
  return {
    no = tonumber(no),
    turn = tonumber(turn),
    messages = tonumber(messages),
    tokens = tonumber(tokens),
    first_no = tonumber(first_no),
    first_turn = tonumber(first_turn),
    messages_before = tonumber(messages_before),
    tokens_before = tonumber(tokens_before),
    known = tonumber(known),
    ids = ids,
  }
end

local function head_text(head)
  return string.format(
    "head 1 %d %d %d %d %d %d %d %d %d ",
    head.no, head.turn, head.messages, head.tokens,
    head.first_no, head.first_turn, head.messages_before, head.tokens_before,
    head.known
  ) .. head.ids
end

-- The revision names the newest element: its number and its turn id; 0 where there is none.
local function revision(head)
  if head.no == 0 then
    return "0"
  end
  -- Greedy from the start: a pattern that is anchored at its end alone tries every place.
  return string.format("%d-", head.no) .. (string.match(head.ids, "^.* (%S+)$") or head.ids)
end

-- Answers how many elements came after the one with this id; nil if it is not among them.
local function newer_than(head, turn_id)
  local _, stop = string.find(" " .. head.ids .. " ", " " .. turn_id .. " ", 1, true)
  if not stop then
    return nil
  end
  local _, newer = string.gsub(string.sub(head.ids, stop), "%S+", "")
  return newer
end

local function add_id(head, turn_id)
  if head.known == 0 then
    head.ids, head.known = turn_id, 1
  elseif head.known < IDS_KEPT then
    head.ids, head.known = head.ids .. " " .. turn_id, head.known + 1
  else
    local oldest = string.find(head.ids, " ", 1, true)
    head.ids = string.sub(head.ids, oldest + 1) .. " " .. turn_id
  end
end

local function messages_held(head)
  return head.messages - head.messages_before
end

local function turns_held(head)
  return head.turn - head.first_turn + 1
end
