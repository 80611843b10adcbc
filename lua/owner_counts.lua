--[[
owner_counts: count what conversations hold, and take those that have ended off the lists.

KEYS
  1  conversations  zset   the owner's conversations by the time of their last write
  2  lives          zset   the same by the end of their lives
  3  names          hash   their ids and titles
  4  cleared        zset   those that were cleared of late
  5  turns          list*  the turns of each conversation

ARGV
  1  member  text*  the digest of each conversation

RETURNS {turns, messages, ...}
  turns     int  held; 0 where there is no such conversation any more, -1 where not readable
  messages  int  the same
]]
--# include head
--# include held
--# include owner
--# include allowed
--# include listed
local conversations = KEYS[1]
local lives = KEYS[2]
local names = KEYS[3]
local cleared = KEYS[4]
local first_of_turns = 5

local answer = {}
for place, member in ipairs(ARGV) do
  local turns, messages = measure(KEYS[first_of_turns + place - 1])
  if not turns and not is_undone(conversations, cleared, member) then
    -- Where a replica is asked, or an ACL forbids it, they are only left out of the answer.
    pcall(take_off, conversations, lives, names, member)
  end
  answer[#answer + 1] = turns or 0
  answer[#answer + 1] = messages or 0
end
return answer
