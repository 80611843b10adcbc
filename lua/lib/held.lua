-- Measures a list of turns whatever it is: answers its turns and messages, nil where there is
-- none, and -1, -1 where it is not readable.
local function measure(key)
  local elements = redis.pcall("LLEN", key)
  if elements == 0 then
    return nil
  end
  local head = type(elements) == "number" and read_head(key)
  if not head then
    return -1, -1
  end
  return turns_held(head), messages_held(head)
end
