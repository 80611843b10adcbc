--[[
lease_take: take the lease of a conversation, or a place in the queue for it.

KEYS
  1  queue       text   who has the lease of the conversation, and who waits for it
  2  generation  text?  what was begun and erased of the owner
  3  lives       zset?  the owner's conversations by the end of their lives
  4  cleared     zset?  those that were cleared of late

ARGV
  1  token        text  1 to 64, visible ASCII, no : |  tells this turn from others
  2  lease_ms     int   >= 1                             how long the lease is held
  3  ticket_ms    int   >= 1                             the place is lost if not asked again
  4  max_waiters  int   >= 0                             places there are
  5  began        int?  as from owner_begin              what was erased since, is refused
  6  member       text? a digest, or -                   in the owner's lists; - is none of them

RETURNS {number, place, now_ms}
  number  int  the fence of the lease, which is taken; 0 where it is not yet
  place   int  in the queue, from 1; 0 where the lease is taken
  now_ms  int  the server's clock

ERRORS
  FULL <places>    no place is left; nothing was written
  ERASED <what>    erased or cleared since `began`, or too long ago; nothing was written
  LOST             this turn has given the lease back, or has given up; nothing was written
  CORRUPT, FORMAT  the queue cannot be read; nothing was written
]]
--# include queue
--# include lease
--# include owner
--# include begun
--# include allowed
--# include listed
local queue = KEYS[1]
local generation = KEYS[2]
local lives = KEYS[3]
local cleared = KEYS[4]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])
local ticket_ms = tonumber(ARGV[3])
local max_waiters = tonumber(ARGV[4])
local began = tonumber(ARGV[5])
local member = ARGV[6]

local line, refusal = read_queue(queue)
if generation and not refusal then
  refusal = select(2, still_begun(generation, cleared, member, began))
end
if refusal then
  return redis.error_reply(refusal)
end
if is_gone(line, token) then
  return redis.error_reply("LOST the lease was given back")
end

local function write()
  if generation and member ~= "-" then  -- that stands for none: the queue is of the owner
    note_waiting(lives, member, line.now, KEPT_MS)
  end
  write_queue(queue, line)
end

local waiting = {}
local place = nil
for _, waiter in ipairs(line.waiting) do
  if waiter.until_ms > line.now or waiter.token == token then
    table.insert(waiting, waiter)
    place = waiter.token == token and #waiting or place
  end
end
line.waiting = waiting

if line.token == token then
  -- Sent again after its answer was lost: the grant is the same.
  line.until_ms = line.now + lease_ms
elseif line.until_ms <= line.now and (place or #waiting + 1) == 1 then
  if place then
    table.remove(waiting, place)
  end
  -- From the clock, so that the number grows also where the key was lost.
  line.number = math.max(line.number + 1, line.now_us)
  line.token = token
  line.until_ms = line.now + lease_ms
else
  if not place and #waiting >= max_waiters then
    return redis.error_reply("FULL " .. #waiting)
  end
  place = place or #waiting + 1
  waiting[place] = { token = token, until_ms = line.now + ticket_ms }
  write()
  return { 0, place, line.now }
end
write()
return { line.number, 0, line.now }
