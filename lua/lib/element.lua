-- The header line of an element; src/turnstore/_element.py says what its fields are.
-- Reads no payload: a pattern that is anchored at the start stops at the line feed.
local ELEMENT = "^1 (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) %l (%S+) (%S+)\n"

-- Answers the header as a table, or nil and a refusal. `index` is its place in the list.
local function read_header(key, index)
  local text = redis.call("LINDEX", key, index)
  if not text then
    return nil, "CORRUPT the element at index " .. index .. " is missing"
  end
  local no, turn, messages, tokens, time_ms, count, _, turn_id = string.match(text, ELEMENT)
  if not no then
    local format = string.match(text, "^(%d+) ")
    if format and format ~= "1" then
      return nil, "FORMAT " .. format
    end
    return nil, "CORRUPT the element at index " .. index .. " has no header of ours"
  end
  return {
    no = tonumber(no),
    turn = tonumber(turn),
    messages = tonumber(messages),
    tokens = tonumber(tokens),
    time_ms = tonumber(time_ms),
    count = tonumber(count),
    turn_id = turn_id,
  }
end
