--[[
facts_traces: drop what a fact has left that is gone, and say what cannot be dropped.

KEYS
  1  facts     hash  the facts by their ids
  2  order     zset  the ids, which begin with the time
  3  norms     hash  the ids of the facts that hold, by what they say
  4  postings  hash  the facts by their terms; the fields with # are no terms
  5  used      zset  when facts were last found
  6  uses      hash  how often
  7  vector    text* where a vector of it may lie, as lib/facts_vectors.lua says

ARGV
  1  id      text   of the fact
  2  engine  text*  whose vectors these are, in the order of their keys

RETURNS {is_fact, has_words, vectors, others}
  is_fact    int  1 where it is there, so that nothing was dropped
  has_words  int  1 where terms have it, though it is gone: the facts themselves are lost
  vectors    int  dropped
  others     int  entries dropped in other keys
]]
--# include facts_norms
--# include facts_vectors
--# include facts_postings
--# include facts_unpost
local facts = KEYS[1]
local order = KEYS[2]
local norms = KEYS[3]
local postings = KEYS[4]
local used = KEYS[5]
local uses = KEYS[6]
local first_of_vector = 7
local id = ARGV[1]
local first_of_engine = 2

if redis.call("HEXISTS", facts, id) == 1 then
  return { 1, 0, 0, 0 }
end
local vectors = 0
for at = first_of_engine, #ARGV do
  local key = KEYS[first_of_vector + at - first_of_engine]
  vectors = vectors + drop_vector(ARGV[at], key, id)
end
local others = redis.call("ZREM", order, id) + redis.call("ZREM", used, id)
  + redis.call("HDEL", uses, id) + free_norm(norms, norm_of(norms, id), id)
local has_words = 0
each_posted(postings, function(_, records)
  has_words = record_of(records, id) and 1 or has_words
end)
return { 0, has_words, vectors, others }
