-- The queue of a conversation: who has the lease, and who waits for it, as one text:
--   queue 1 <number> <token> <until_ms> | <gone> ... | <token>:<until_ms> ...
-- `number` and `token` are of the newest grant. The number is the fence: no later grant has
-- a smaller one. A lease is over at `until_ms`, which is 0 where it was given back, and a
-- waiter who has not asked again by his is passed over. `gone` are the newest tokens that gave
-- back or gave up: a command of theirs that comes late, or twice, must not queue them again.
local QUEUE = "^queue 1 (%d+) (%S+) (%d+) |([^|]*)|([^|]*)$"
-- How long a queue outlives all that is in it, in milliseconds, so that a save that comes
-- late still finds out whether another turn was granted the lease after it.
local KEPT_MS = 600000

-- Answers the queue as a table (an empty one where there is no key), or nil and a refusal.
local function read_queue(key)
  local time = redis.call("TIME")
  local now_us = time[1] * 1000000 + time[2]
  local now = math.floor(now_us / 1000)
  local text = redis.call("GET", key)
  if not text then
    return {
      now = now, now_us = now_us,
      number = 0, token = "-", until_ms = 0, gone = "", waiting = {},
    }
  end
  local number, token, until_ms, gone, wait = string.match(text, QUEUE)
  if not number then
    local format = string.match(text, "^queue (%d+) ")
    if format and format ~= "1" then
      return nil, "FORMAT " .. format
    end
    return nil, "CORRUPT the queue of turns is not one of ours"
  end
  local waiting = {}
  for waiter, its_until in string.gmatch(wait, " ([^ :]+):(%d+)") do
    table.insert(waiting, { token = waiter, until_ms = tonumber(its_until) })
  end
  return {
    now = now,
    now_us = now_us,
    number = tonumber(number),
    token = token,
    until_ms = tonumber(until_ms),
    gone = gone,
    waiting = waiting,
  }
end

-- One command, so that a script that is stopped here has written nothing.
local function write_queue(key, queue)
  local last = math.max(queue.until_ms, queue.now)
  local wait = ""
  for _, waiter in ipairs(queue.waiting) do
    wait = wait .. string.format(" %s:%d", waiter.token, waiter.until_ms)
    last = math.max(last, waiter.until_ms)
  end
  local text = string.format("queue 1 %d %s %d |", queue.number, queue.token, queue.until_ms)
  local ttl_ms = string.format("%d", last - queue.now + KEPT_MS)
  redis.call("SET", key, text .. queue.gone .. "|" .. wait, "PX", ttl_ms)
end
