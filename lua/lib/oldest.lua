-- Move the start of a conversation forward past whole turns, until the limits hold; the
-- newest turn always stays. Changes the table alone: answers how many elements to drop,
-- or nil and a refusal. A limit of 0 is no limit. Cost: a read per dropped element.
local function drop_oldest(key, head, max_messages, max_turns)
  local dropped = 0
  local inside = nil -- the turn whose first piece was dropped
  -- As many turns as elements means that no turn has several pieces.
  local pieces = head.no - head.first_no ~= head.turn - head.first_turn
  while true do
    local over = (max_messages > 0 and messages_held(head) > max_messages)
      or (max_turns > 0 and turns_held(head) > max_turns)
    if head.first_no == head.no or not (over or (inside and pieces)) then
      return dropped
    end
    local oldest, refusal = read_header(key, dropped + 1)
    if refusal then
      return nil, refusal
    end
    if oldest.turn == head.turn or not (over or oldest.turn == inside) then
      return dropped
    end
    dropped = dropped + 1
    inside = oldest.turn
    head.first_no = oldest.no + 1
    head.first_turn = oldest.turn + 1
    head.messages_before = oldest.messages
    head.tokens_before = oldest.tokens
  end
end
