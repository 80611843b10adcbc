--[[
fold: replace the summary by one that covers more turns, and renew the lease or give it back.

KEYS
  1  turns       list   the head, then one element per turn or piece of one, oldest first
  2  summary     text   of the oldest turns
  3  lease       text   who folds now; expires by itself
  4  generation  text?  what was begun and erased of the owner
  5  cleared     zset?  the owner's conversations that were cleared of late

ARGV
  1  token     text              as given to fold_begin
  2  lease_ms  int   >= 0        how long the lease is held on; 0 gives it back
  3  covered   int   >= 0        the element up to which the replaced summary went; 0 none
  4  upto      text  a revision  of the last element that the new one covers
  5  value     JSON              the new summary: [1,<no>,...]; empty stores none
  6  began     int?  as given to fold_begin  what was erased since, is refused
  7  member    text? a digest                the conversation in its owner's lists

RETURNS int  1 stored; 0 not: the turns or the summary changed meanwhile, or nothing to store

ERRORS
  ERASED <what>    erased or cleared since `began`, or too long ago; nothing was written
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
]]
--# include element
--# include head
--# include covered
--# include owner
--# include begun
local turns = KEYS[1]
local summary = KEYS[2]
local lease = KEYS[3]
local generation = KEYS[4]
local cleared = KEYS[5]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])
local covered = tonumber(ARGV[3])
local upto = ARGV[4]
local value = ARGV[5]
local began = tonumber(ARGV[6])
local member = ARGV[7]

local function renew_or_give_back()
  if redis.call("GET", lease) ~= token then
    return
  end
  if lease_ms > 0 then
    redis.call("PEXPIRE", lease, lease_ms)
  else
    redis.call("DEL", lease)
  end
end

if value == "" then
  renew_or_give_back()
  return 0
end
local head, refusal = read_head(turns)
if generation and not refusal then
  refusal = select(2, still_begun(generation, cleared, member, began))
end
if refusal then
  return redis.error_reply(refusal)
end
local known = covered_by(summary)
local no, turn_id = string.match(upto, "^(%d+)%-(.+)$")
no = tonumber(no)
-- It may have been sent again after its answer was lost.
local is_stored = known == no and redis.call("GET", summary) == value
local fits = not is_stored and known == covered and no <= head.no
-- An element that was trimmed away meanwhile is covered all the same; one that was undone,
-- and has another in its place, is not.
if fits and no >= head.first_no then
  local last
  last, refusal = read_header(turns, no - head.first_no + 1)
  if refusal then
    return redis.error_reply(refusal)
  end
  fits = last.turn_id == turn_id
end
renew_or_give_back()
if fits then
  local ttl_ms = redis.call("PTTL", turns)
  if ttl_ms > 0 then
    redis.call("SET", summary, value, "PX", ttl_ms)
  else
    redis.call("SET", summary, value)
  end
end
return (is_stored or fits) and 1 or 0
