--[[
page: read the newest whole turns before a turn.

KEYS
  1  turns      list  the head, then one element per turn or piece of one, oldest first

ARGV
  1  before     int   >= 0  turns from this ordinal on are left out; 0 leaves none out
  2  max_turns  int   >= 0  turns read at most; 0 is no limit

RETURNS {revision, previous, tokens, element, ...}
  revision  text   of the conversation
  previous  text   revision of the element before the first one read; 0 where there is none
  tokens    int    running total before the first one read
  element   bytes  oldest first

ERRORS
  CORRUPT, FORMAT  what is stored cannot be read
]]
--# include element
--# include head
local turns = KEYS[1]
local before = tonumber(ARGV[1])
local max_turns = tonumber(ARGV[2])

local head, refusal = read_head(turns)
if refusal then
  return redis.error_reply(refusal)
end

-- The index of the first element whose turn is at least this one, by bisection.
local function index_of(turn)
  local low, high = 1, head.no - head.first_no + 2
  while low < high do
    local middle = math.floor((low + high) / 2)
    local header
    header, refusal = read_header(turns, middle)
    if refusal then
      return nil
    end
    if header.turn < turn then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

local newest = head.turn
if before > 0 and before <= newest then
  newest = before - 1
end
local oldest = head.first_turn
if max_turns > 0 and newest - max_turns + 1 > oldest then
  oldest = newest - max_turns + 1
end
if head.no == 0 or newest < oldest then
  return { revision(head), "0", 0 }
end
local start = index_of(oldest)
local stop = start and index_of(newest + 1)
local previous, tokens = "0", head.tokens_before
if stop and start > 1 then
  local header
  header, refusal = read_header(turns, start - 1)
  if header then
    previous, tokens = string.format("%d-", header.no) .. header.turn_id, header.tokens
  end
end
if refusal then
  return redis.error_reply(refusal)
end
local answer = { revision(head), previous, tokens }
for _, element in ipairs(redis.call("LRANGE", turns, start, stop - 1)) do
  answer[#answer + 1] = element
end
return answer
