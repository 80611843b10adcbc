--[[
lease_renew: hold the lease of a conversation for longer.

KEYS
  1  queue     text  who has the lease of the conversation, and who waits for it

ARGV
  1  token     text         as given to lease_take
  2  lease     text         "<number> <token>" of the grant
  3  lease_ms  int   >= 1   how long it is held from now on

RETURNS int  1 held; 0 lost: given back, another turn was granted it, or the key is gone

ERRORS
  CORRUPT, FORMAT  the queue cannot be read; nothing was written
]]
--# include queue
--# include lease
local queue = KEYS[1]
local token = ARGV[1]
local lease = ARGV[2]
local lease_ms = tonumber(ARGV[3])

local line, refusal = read_queue(queue)
if refusal then
  return redis.error_reply(refusal)
end
if not is_newest(line, lease) or is_gone(line, token) then
  return 0
end
line.until_ms = line.now + lease_ms
write_queue(queue, line)
return 1
