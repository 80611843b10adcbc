-- Who may still do what with the queue of lib/queue.lua.
local GONE_KEPT = 16

local function is_gone(queue, token)
  return string.find(queue.gone .. " ", " " .. token .. " ", 1, true) ~= nil
end

-- Tells whether a lease, "<number> <token>", is of the newest grant. It need not be in time:
-- as long as no other turn was granted the lease, none has begun that this one could disturb.
local function is_newest(queue, lease)
  return string.format("%d ", queue.number) .. queue.token == lease
end

-- The same for a script whose caller need not have a lease; none is an empty text.
local function has_newest(key, lease)
  if lease == "" then
    return true
  end
  local queue = read_queue(key)
  return queue ~= nil and is_newest(queue, lease)
end

-- Gives the lease back, or gives up the place in the queue; twice is harmless.
local function leave(key, queue, token)
  if is_gone(queue, token) then
    return
  end
  if queue.token == token then
    queue.until_ms = 0
  end
  for place, waiter in ipairs(queue.waiting) do
    if waiter.token == token then
      table.remove(queue.waiting, place)
      break
    end
  end
  queue.gone = queue.gone .. " " .. token
  local all_but_oldest = "^ %S+(" .. string.rep(" %S+", GONE_KEPT) .. ")$"
  queue.gone = string.match(queue.gone, all_but_oldest) or queue.gone
  write_queue(key, queue)
end

local function give_back(key, lease)
  local queue = lease ~= "" and read_queue(key)
  if queue then
    leave(key, queue, string.match(lease, "%S+$"))
  end
end
