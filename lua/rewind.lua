--[[
rewind: undo the newest turns, back to an earlier revision.

KEYS
  1  turns       list   the head, then one element per turn or piece of one, oldest first
  2  summary     text   of the oldest turns; goes with one that it covers, and with the last one
  3  generation  text?  what was begun and erased of the owner
  4  cleared     zset?  the owner's conversations that were cleared of late

ARGV
  1  expected  text   a revision  demanded before the rewind
  2  target    text   a revision  of an element that is held, or 0 for none of them
  3  member    text?  a digest    the conversation in its owner's lists

RETURNS int  1 rewound; 0 the conversation is at `target` already

ERRORS
  CONFLICT <revision>  neither at `expected` nor at `target`; nothing was written
  CORRUPT, FORMAT      what is stored cannot be read; nothing was written
]]
--# include element
--# include head
--# include owner
--# include allowed
--# include covered
--# include undoing
local turns = KEYS[1]
local summary = KEYS[2]
local generation = KEYS[3]
local cleared = KEYS[4]
local expected = ARGV[1]
local target = ARGV[2]
local member = ARGV[3]

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end
local now = revision(head)
if now == target then
  return 0
end

local kept
kept, refusal = element_at(turns, head, target)
if now ~= expected then
  -- Gone, with `target` in place: this command has undone it, its answer was lost, and
  -- somebody appended before it was sent again. Otherwise they appended before it.
  local there, unread = element_at(turns, head, expected)
  local undone = (target == "0" or kept) and not there
  local trimmed = tonumber(string.match(expected, "^%d+")) < head.first_no
  refusal = refusal or unread
  if undone and not trimmed and not refusal then
    return 0
  end
  return redis.error_reply(refusal or "CONFLICT " .. now)
end
if target == "0" then
  local owner
  if generation then
    owner, refusal = read_generation(generation)
  end
  refusal = refusal or owner and undoing_forbidden(cleared) or forbidden(turns, "DEL")
  if refusal then
    return redis.error_reply(refusal)
  end
  redis.call("DEL", turns, summary)
  note_undone(cleared, owner, member, 0)
  return 1
end
if not kept then
  return redis.error_reply(refusal or "CORRUPT the element " .. target .. " is not in its place")
end
local covered = covered_by(summary)
refusal = undo_to(turns, head, kept) or forbidden(turns, "LSET", "DEL")
if refusal then
  return redis.error_reply(refusal)
end
redis.call("LTRIM", turns, 0, kept.no - head.first_no + 1)
redis.call("LSET", turns, 0, head_text(head))
if covered > kept.no then
  redis.call("DEL", summary)
end
return 1
