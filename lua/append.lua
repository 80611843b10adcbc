--[[
append: add one turn to a conversation, and drop the oldest turns beyond the limit.

KEYS
  1  turns         list  the head, then one element per turn or piece of one, oldest first
  2  summary       text  of the oldest turns; lives and dies with them
  3  queue         text  who has the lease of the conversation, and who waits for it

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

RETURNS {added, revision, turns, messages, tokens, dropped}
  added     int   1 stored now; 0 stored before under this turn id, or nothing to store
  revision  text  of the element with this turn id
  turns, messages, tokens  int  what the conversation holds now
  dropped   int   turns dropped from the front

ERRORS
  CONFLICT <revision>  not at `expected`, or nothing to continue; nothing was written
  LOST                 `lease` is not of the newest grant; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include element
--# include head
--# include oldest
--# include allowed
--# include put
--# include queue
--# include lease
local turns = KEYS[1]
local summary = KEYS[2]
local queue = KEYS[3]
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

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end

local function answer(added, at_revision, dropped)
  return {
    added, at_revision, turns_held(head), messages_held(head),
    head.tokens - head.tokens_before, dropped,
  }
end

-- Before the expected revision: a command that is sent again after its answer was lost
-- finds the conversation at the revision that it made itself.
local newer = newer_than(head, turn_id)
if newer then
  give_back(queue, lease)
  return answer(0, string.format("%d-", head.no - newer) .. turn_id, 0)
end
if not has_newest(queue, lease) then
  return redis.error_reply("LOST the lease")
end
if (expected ~= "" and expected ~= revision(head)) or (continues and head.no == 0) then
  return redis.error_reply("CONFLICT " .. revision(head))
end
if count == 0 then
  return answer(0, revision(head), 0)
end

local first_turn = head.first_turn
head.no = head.no + 1
head.turn = continues and head.turn or head.turn + 1
head.messages = head.messages + count
head.tokens = head.tokens + tokens
add_id(head, turn_id)
local dropped
dropped, refusal = drop_oldest(turns, head, max_messages, 0)
if refusal then
  return redis.error_reply(refusal)
end

local time = redis.call("TIME")
local time_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local element = codec .. string.format(
  '[1,%d,%d,%d,%d,%d,%d,"%s","%s","%s",',
  head.no, head.turn, head.messages, head.tokens, time_ms, count, format, turn_id, counter
) .. payload .. "]"
refusal = lease ~= "" and forbidden(queue, "SET")
  or put_element(turns, summary, head, element, dropped, ttl_ms)
if refusal then
  return redis.error_reply(refusal)
end
give_back(queue, lease)
return answer(1, revision(head), head.first_turn - first_turn)
