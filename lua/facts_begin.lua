--[[
facts_begin: give a number to what is going to write facts of an owner, and say what is there.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  postings    hash  the facts by their terms; the fields with # are no terms
  3  norms       hash  the ids of the facts that hold, by what they say

ARGV
  1  takes_away  int    0 or 1  1 begins on a full server, too
  2  norm        text*  the digests of what may be stored already

RETURNS {number, time_ms, spaces, id, ...}
  number  int   what has it is refused once its owner is erased; no smaller one follows it
  time_ms int   the clock
  spaces  text  where the vectors of the owner lie; empty where there are none yet
  id      text  of the fact for each digest; empty where there is none

ERRORS
  ERASED closed  the owner is being erased just now; nothing was written
  FORMAT         the key was written by a later version; nothing was written
]]
--# include owner
--# include begun
--# include allowed
local generation = KEYS[1]
local postings = KEYS[2]
local norms = KEYS[3]
local takes_away = ARGV[1] == "1"
local first_of_norm = 2

local owner, refusal = read_open(generation)
refusal = refusal or takes_away and forbidden(generation, "UNLINK", "SET")
if refusal then
  return redis.error_reply(refusal)
end
local answer = { next_number(owner), owner.now, redis.call("HGET", postings, "#v") or "" }
for at = first_of_norm, #ARGV do
  table.insert(answer, redis.call("HGET", norms, ARGV[at]) or "")
end
write_generation(generation, owner, takes_away)
return answer
