--[[
facts_tally: count the facts of an owner in each of the keys that have all of them.

KEYS
  1  facts     hash  the facts by their ids
  2  order     zset  the ids, which begin with the time
  3  postings  hash  the facts by their terms; the fields with # are no terms
  4  vector    text* where vectors lie, a hash or a vector set for each space

ARGV

RETURNS {facts, listed, posted, vectors}, of one moment
  facts    int  in the hash
  listed   int  in the order
  posted   int  in the index of words
  vectors  int  the most that a space has
]]
local facts = KEYS[1]
local order = KEYS[2]
local postings = KEYS[3]
local first_of_vector = 4

local vectors = 0
for place = first_of_vector, #KEYS do
  local kind = redis.call("TYPE", KEYS[place]).ok
  if kind ~= "none" then
    vectors = math.max(vectors, redis.call(kind == "hash" and "HLEN" or "VCARD", KEYS[place]))
  end
end
local posted = redis.call("HGET", postings, "#n")
return { redis.call("HLEN", facts), redis.call("ZCARD", order), tonumber(posted or 0), vectors }
