-- Makes the text of a new element up to its messages; src/turnstore/_element.py says what its
-- fields are.
local function element_text(no, turn, messages, tokens, count, format, turn_id, counter)
  local time = redis.call("TIME")
  return string.format(
    '[1,%d,%d,%d,%d,%d,%d,"%s","%s","%s",',
    no, turn, messages, tokens,
    time[1] * 1000 + math.floor(time[2] / 1000), count, format, turn_id, counter
  )
end
