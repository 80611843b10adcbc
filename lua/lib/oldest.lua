-- Move the start of a conversation forward past whole turns, until the limits hold; the
-- newest turn always stays. Changes the table alone: answers how many elements to drop,
-- or nil and a refusal. A limit of 0 is no limit. Cost: one read where one turn goes, as in
-- most appends; else a logarithm of what goes, as the running totals only grow.
local function drop_oldest(key, head, max_messages, max_turns)
  -- How much has to stand before the oldest element that stays.
  local messages_before = max_messages > 0 and head.messages - max_messages or 0
  local turns_before = max_turns > 0 and head.turn - max_turns or 0
  if head.messages_before >= messages_before and head.first_turn > turns_before then
    return 0
  end
  -- The newest element always stays; in an append it is not even in the list yet.
  local held = head.no - head.first_no
  -- As many turns as elements means that no turn has several pieces.
  local pieces = held ~= head.turn - head.first_turn
  local last, refusal
  local function goes(index)
    local header
    header, refusal = read_header(key, index)
    if not header or header.turn == head.turn
      or (header.messages - header.count >= messages_before and header.turn > turns_before) then
      return false
    end
    last = header
    return true
  end
  local low, high = 0, 1 -- elements up to `low` go, `high` stays
  while high <= held and goes(high) do
    local enough = last.messages >= messages_before and last.turn >= turns_before
    low, high = high, enough and high + 1 or high * 2
    if enough then
      break
    end
  end
  high = math.min(high, held + 1)
  while not refusal and high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if goes(middle) then
      low = middle
    else
      high = middle
    end
  end
  while pieces and last and not refusal and low < held do
    local header
    header, refusal = read_header(key, low + 1)
    if not header or header.turn ~= last.turn then
      break
    end
    low, last = low + 1, header
  end
  if refusal then
    return nil, refusal
  end
  if last then
    head.first_no = last.no + 1
    head.first_turn = last.turn + 1
    head.messages_before = last.messages
    head.tokens_before = last.tokens
  end
  return low
end
