--[[
clear: delete a conversation, readable or not.

KEYS
  1  turns          list   the head, then one element per turn or piece of one, oldest first
  2  summary        text   of the oldest turns
  3  lease          text   who folds now; expires by itself
  4  queue          text   who has the lease of the conversation, and who waits for it
  5  generation     text?  what was begun and erased of the owner
  6  conversations  zset?  the owner's conversations by the time of their last write
  7  lives          zset?  the same by the end of their lives
  8  names          hash?  their ids and titles
  9  cleared        zset?  the owner's conversations that were cleared of late

ARGV
  1  member  text?  a digest  the conversation in its owner's lists

RETURNS {turns, messages, summaries, keys}  what was deleted
  turns      int  0 where there was no conversation
  messages   int  0 also where they could not be counted
  summaries  int  0 or 1
  keys       int  of Redis

ERRORS
  WRONGTYPE  the key is not a list; nothing was deleted
  FORMAT     what was erased of the owner was written by a later version; nothing was deleted
]]
--# include head
--# include owner
--# include allowed
--# include listed
--# include clearing
local turns = KEYS[1]
local summary = KEYS[2]
local lease = KEYS[3]
local queue = KEYS[4]
local generation = KEYS[5]
local conversations = KEYS[6]
local lives = KEYS[7]
local names = KEYS[8]
local cleared = KEYS[9]
local member = ARGV[1]

local elements = redis.call("LLEN", turns)
local owner, refusal
if generation then
  owner, refusal = clearing_owner(generation, conversations, lives, names, cleared)
  refusal = refusal or forbidden(turns, "DEL")
  if refusal then
    return redis.error_reply(refusal)
  end
end
local head = elements > 0 and read_head(turns)
local summaries = redis.call("DEL", summary)
local keys = redis.call("DEL", turns) + summaries
if owner then
  -- Who waits in the queue is refused from now on. Without an owner the queue stays: a save that
  -- comes late has to find out whether another turn was granted the lease after it.
  keys = keys + redis.call("DEL", lease, queue)
  -- At last: a listed conversation that does not exist is harmless, the reverse is not.
  note_cleared(generation, owner, conversations, lives, names, cleared, member)
end
-- A damaged head must not keep a conversation from being deleted: every element counts.
local held = head and math.max(turns_held(head), 1) or elements
return { held, head and messages_held(head) or 0, summaries, keys }
