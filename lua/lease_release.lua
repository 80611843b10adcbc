--[[
lease_release: give back the lease of a conversation, or a place in the queue for it.

KEYS
  1  queue       text   who has the lease of the conversation, and who waits for it
  2  generation  text?  what was begun and erased of the owner
  3  cleared     zset?  the owner's conversations that were cleared of late

ARGV
  1  token   text                        as given to lease_take
  2  began   int?  as given to lease_take  where the owner was erased since, no queue is made
  3  member  text? a digest              the conversation in its owner's lists

RETURNS int  1 always; twice is harmless, and so is a token that was never there

ERRORS
  CORRUPT, FORMAT  the queue cannot be read; nothing was written
]]
--# include queue
--# include lease
--# include owner
--# include begun
local queue = KEYS[1]
local generation = KEYS[2]
local cleared = KEYS[3]
local token = ARGV[1]
local began = tonumber(ARGV[2])
local member = ARGV[3]

local line, refusal = read_queue(queue)
if refusal then
  return redis.error_reply(refusal)
end
local begun = not generation or still_begun(generation, cleared, member, began)
if not begun and redis.call("EXISTS", queue) == 0 then
  return 1 -- the queue went with the rest, and must not be made again
end
leave(queue, line, token)
return 1
