--[[
facts_look: read which facts of an owner have which terms.

KEYS
  1  generation  text  what was begun and erased of the owner
  2  postings    hash  the facts by their terms; the fields with # are no terms
  3  order       zset  the ids, which begin with the time

ARGV
  1  few   int    up to so many facts, their ids are read
  2  term  text*  what is looked for

RETURNS {time_ms, latest_ms, spaces, facts, length, since_ms, ids, records, ...}
  time_ms    int    the clock
  latest_ms  int    the same, but not before a fact was stored, should it have been set back
  spaces     text   where the vectors of the owner lie; empty where there are none
  facts      int    facts in all
  length     int    terms in all
  since_ms   int    no fact was stored before
  ids        text   a list of all of them, oldest first; empty where they are more than `few`
  records    bytes  for each term, of the facts that have it; empty where none has

ERRORS
  FORMAT  what was begun and erased was written by a later version
]]
--# include owner
local generation = KEYS[1]
local postings = KEYS[2]
local order = KEYS[3]
local few = tonumber(ARGV[1])
local first_of_term = 2

local owner, refusal = read_generation(generation)
if refusal then
  return redis.error_reply(refusal)
end
local head = redis.call("HMGET", postings, "#v", "#n", "#l", "#s")
local facts = tonumber(head[2] or 0)
local ids = facts <= few and redis.call("ZRANGE", order, 0, -1) or {}
local answer = {
  owner.now, math.floor(math.max(owner.number, owner.now_us) / 1000), head[1] or "",
  facts, tonumber(head[3] or 0), tonumber(head[4] or 0), ids,
}
for at = first_of_term, #ARGV do
  table.insert(answer, redis.call("HGET", postings, ARGV[at]) or "")
end
return answer
