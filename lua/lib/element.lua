-- The header of an element; src/turnstore/_element.py says what its fields are. The pattern
-- is anchored at the start and ends before the messages: it reads none of them.
local ELEMENT = '^w?%[1,(%d+),(%d+),(%d+),(%d+),(%d+),(%d+),"[^"]+","([^"]+)",'

-- Answers the header as a table, or nil and a refusal. `index` is its place in the list.
local function read_header(key, index)
  local text = redis.call("LINDEX", key, index)
  if not text then
    return nil, "CORRUPT the element at index " .. index .. " is missing"
  end
  local no, turn, messages, tokens, time_ms, count, turn_id = string.match(text, ELEMENT)
  if not no then
    local format = string.match(text, "^w?%[(%d+),")
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
