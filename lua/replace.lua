--[[
replace: put one turn in the place of another and of all that came after it.

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
  4  expected      text  a revision                        demanded before it
  5  replaced      text  a revision                        of the first element that goes
  6  continues     int   0 or 1                            1 joins it to the turn before
  7  count         int   >= 1                              messages
  8  tokens        int   >= 0                              tokens of these messages
  9  counter       text  a name, or empty                  what counted the tokens
  10 codec         text  empty or w                        w: JSON for the slow library
  11 format        text  visible ASCII without " and \     whose JSON the messages are
  12 payload       JSON  an array, or an array, an object  the messages, and the meta
  13 lease         text  "<number> <token>", or empty      demanded, and given back after it
  14 began         int?  as from owner_begin               what was erased since, is refused
  15 member        text? a digest                          the conversation in its owner's lists
  16 name          JSON? [id]                              the same, to be read again

RETURNS {added, revision, turns, messages, tokens, dropped, replaced}
  added     int   1 stored now; 0 stored before under this turn id
  revision  text  of the element with this turn id
  turns, messages, tokens  int  what the conversation holds now
  dropped   int   turns dropped from the front
  replaced  int   1 what was to go is not there, now or since before; 0 it is, or is not readable

ERRORS
  CONFLICT <revision>  not at `expected`, or nothing to continue; nothing was written
  GONE <revision>      `replaced` is not held any more, or in the summary; nothing was written
  LOST                 `lease` is not of the newest grant; nothing was written
  ERASED <what>        erased or cleared since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include element_text
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
--# include covered
--# include undoing
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
local replaced = ARGV[5]
local continues = ARGV[6] == "1"
local count = tonumber(ARGV[7])
local tokens = tonumber(ARGV[8])
local counter = ARGV[9]
local codec = ARGV[10]
local format = ARGV[11]
local payload = ARGV[12]
local lease = ARGV[13]
local began = tonumber(ARGV[14])
local member = ARGV[15]
local name = ARGV[16]

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end
local first, unread = element_at(turns, head, replaced)

-- Before the expected revision, as in `append`.
local newer = newer_than(head, turn_id)
if newer then
  give_back(queue, lease)
  local its = string.format("%d-", head.no - newer) .. turn_id
  return append_answer(head, 0, its, 0, (first or unread) and 0 or 1)
end
local owner
if generation then
  owner, refusal = still_begun(generation, cleared, member, began)
end
refusal = refusal or not has_newest(queue, lease) and "LOST the lease"
  or expected ~= revision(head) and "CONFLICT " .. revision(head)
  or unread or (not first or covered_by(summary) >= first.no) and "GONE " .. replaced
  or continues and first.no == head.first_no and "CONFLICT " .. revision(head)
if refusal then
  return redis.error_reply(refusal)
end

local first_turn, place = head.first_turn, first.no - head.first_no + 1
local undone = place == 1 and owner or nil -- all that is held goes
refusal = undo_before(turns, head, first)
if refusal then
  return redis.error_reply(refusal)
end
count_in(head, turn_id, count, tokens, continues)
local dropped
dropped, refusal = drop_oldest(turns, head, max_messages, 0)
refusal = refusal or lease ~= "" and forbidden(queue, "SET")
  or owner and listing_forbidden(generation, conversations, lives, names)
  or undone and undoing_forbidden(cleared)
  or forbidden(turns, "LSET", "LTRIM", life_command(ttl_ms))
if refusal then
  return redis.error_reply(refusal)
end
if owner then
  list_it(generation, owner, conversations, lives, names, member, name, ttl_ms)
end
local element = codec .. header_text(head, count, format, turn_id, counter) .. payload .. "]"
-- In the place of the first that goes: a full server refuses it before anything else is changed.
redis.call("LSET", turns, place, element)
redis.call("LTRIM", turns, dropped, place)
redis.call("LSET", turns, 0, head_text(head))
set_life(ttl_ms, turns, summary)
local before_us = 1000 -- the millisecond of the new turn, which stays
note_undone(cleared, undone, member, before_us)
give_back(queue, lease)
return append_answer(head, 1, revision(head), head.first_turn - first_turn, 1)
