--[[
append: add one turn to a conversation, and drop the oldest turns beyond the limit.

KEYS
  1  turns         list   the head, then one element per turn or piece of one, oldest first
  2  summary       text   of the oldest turns; lives and dies with them
  3  queue         text   who has the lease of the conversation, and who waits for it
  4  generation    text?  what was begun and erased of the owner
  5  conversations zset?  the owner's conversations by the time of their last write
  6  lives         zset?  the same by the end of their lives
  7  names         hash?  their ids and titles
  8  cleared       zset?  the owner's conversations that were cleared of late

ARGV
  1  turn_id       text  1 to 64, visible ASCII, no " \     the idempotency key
  2  ttl_ms        int   >= 0                              time to live; 0 keeps forever
  3  max_messages  int   >= 0                              messages held; 0 is no limit
  4  expected      text  a revision, or empty              demanded before the append
  5  continues     int   0 or 1                            1 joins it to the newest turn
  6  count         int   >= 0                              messages; 0 writes nothing
  7  tokens        int   >= 0                              tokens of these messages
  8  counter       text  a name, or empty                  what counted the tokens
  9  codec         text  empty or w                        w: JSON for the slow library
  10 format        text  visible ASCII without " and \     whose JSON the messages are
  11 payload       JSON  an array, or an array, an object  the messages, and the meta
  12 lease         text  "<number> <token>", or empty      demanded, and given back after it
  13 began         int?  as from owner_begin               what was erased since, is refused
  14 member        text? a digest                          the conversation in its owner's lists
  15 name          JSON? [id]                              the same, to be read again

RETURNS {added, revision, turns, messages, tokens, dropped}
  added     int   1 stored now; 0 stored before under this turn id, or nothing to store
  revision  text  of the element with this turn id
  turns, messages, tokens  int  what the conversation holds now
  dropped   int   turns dropped from the front

ERRORS
  CONFLICT <revision>  not at `expected`, or nothing to continue; nothing was written
  LOST                 `lease` is not of the newest grant; nothing was written
  ERASED <what>        erased or cleared since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include straight
local turns = KEYS[1]
local summary = KEYS[2]
local queue = KEYS[3]
local generation = KEYS[4]
local conversations = KEYS[5]
local lives = KEYS[6]
local names = KEYS[7]
local cleared = KEYS[8]
local turn_id = ARGV[1]
local ttl_ms = tonumber(ARGV[2])
local max_messages = tonumber(ARGV[3])
local expected = ARGV[4]
local continues = ARGV[5] == "1"
local count = tonumber(ARGV[6])
local tokens = tonumber(ARGV[7])
local counter = ARGV[8]
local codec = ARGV[9]
local format = ARGV[10]
local payload = ARGV[11]
local lease = ARGV[12]
local began = tonumber(ARGV[13])
local member = ARGV[14]
local name = ARGV[15]

local done = expected == "" and lease == "" and not continues and not generation
  and append_straight(
    turns, summary, turn_id, ttl_ms, max_messages, count, tokens, counter, codec, format, payload
  )
if done then
  return done
end

-- All others. Their functions stand here and below, where the straight way does not pay for them.
--# include element
--# include head
--# include oldest
--# include allowed
--# include life
--# include put
--# include queue
--# include lease
--# include owner
--# include begun
--# include listed
local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end

-- Before the expected revision: a command that is sent again after its answer was lost
-- finds the conversation at the revision that it made itself.
local newer = newer_than(head, turn_id)
if newer then
  give_back(queue, lease)
  return append_answer(head, 0, string.format("%d-", head.no - newer) .. turn_id, 0)
end
local owner
if generation then
  owner, refusal = still_begun(generation, cleared, member, began)
end
refusal = refusal or not has_newest(queue, lease) and "LOST the lease"
  or (expected ~= "" and expected ~= revision(head) or continues and head.no == 0)
  and "CONFLICT " .. revision(head)
if refusal then
  return redis.error_reply(refusal)
end
if count == 0 then
  return append_answer(head, 0, revision(head), 0)
end

local first_turn = head.first_turn
count_in(head, turn_id, count, tokens, continues)
local dropped
dropped, refusal = drop_oldest(turns, head, max_messages, 0)
refusal = refusal or lease ~= "" and forbidden(queue, "SET")
  or owner and listing_forbidden(generation, conversations, lives, names)
  or put_forbidden(turns, head, dropped, ttl_ms)
if refusal then
  return redis.error_reply(refusal)
end
if owner then
  -- First: a listed conversation that does not exist is harmless, the reverse is not.
  local is_new = head.no == 1 and not is_undone(conversations, cleared, member)
  list_it(generation, owner, conversations, lives, names, member, name, ttl_ms, is_new)
end
local element = codec .. header_text(head, count, format, turn_id, counter) .. payload .. "]"
put_element(turns, summary, head, element, dropped, ttl_ms)
give_back(queue, lease)
return append_answer(head, 1, revision(head), head.first_turn - first_turn)
