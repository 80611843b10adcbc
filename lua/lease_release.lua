--[[
lease_release: give back the lease of a conversation, or a place in the queue for it.

KEYS
  1  queue  text  who has the lease of the conversation, and who waits for it

ARGV
  1  token  text  as given to lease_take

RETURNS int  1 always; twice is harmless, and so is a token that was never there

ERRORS
  CORRUPT, FORMAT  the queue cannot be read; nothing was written
]]
--# include queue
--# include lease
local queue = KEYS[1]
local token = ARGV[1]

local line, refusal = read_queue(queue)
if refusal then
  return redis.error_reply(refusal)
end
leave(queue, line, token)
return 1
