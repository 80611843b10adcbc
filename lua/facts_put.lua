--[[
facts_put: put vectors of facts into a space that they are being moved to.

KEYS
  1  generation  text   what was begun and erased of the owner
  2  facts       hash   the facts by their ids
  3  postings    hash   the facts by their terms; the fields with # are no terms
  4  vector      text*  where the vector of each fact is to lie

ARGV
  1  began   int     as from facts_begin  what was erased since, is refused
  2  digest  text    of the owner         for the search index
  3  space   text    one space            where they are moved to
  4  part    bytes*  three for each       the id, the revision of the fact, and the vector

RETURNS int  vectors put; facts that were changed or removed meanwhile are left out

ERRORS
  ERASED <what>    erased since `began`; nothing was written
  CORRUPT, FORMAT  what is stored cannot be read; what came before it was written
]]
--# include allowed
--# include owner
--# include begun
--# include facts_record
--# include facts_vectors
local generation = KEYS[1]
local facts = KEYS[2]
local postings = KEYS[3]
local first_of_vector = 4
local began = tonumber(ARGV[1])
local digest = ARGV[2]
local space = ARGV[3]
local first_of_part = 4

local owner, refusal = still_begun(generation, nil, nil, began)
if not owner then
  return redis.error_reply(refusal)
end
local put = 0
local left_ms = redis.call("PTTL", facts)
local is_search = engine_of(space) == "search"
if #KEYS >= first_of_vector and left_ms > 0 then
  -- The vector is the first that is written; it has to live no longer than its fact.
  refusal = forbidden(KEYS[first_of_vector], "PEXPIRE")
    or is_search and forbidden(postings, "HSET") or nil
end
if refusal then
  return redis.error_reply(refusal)
end
for at = first_of_part, #ARGV, 3 do
  local id, key = ARGV[at], KEYS[first_of_vector + (at - first_of_part) / 3]
  local text = redis.call("HGET", facts, id)
  local fact
  if text then
    fact, refusal = parse_fact(text)
    if refusal then
      return redis.error_reply(refusal)
    end
  end
  if fact and fact.revision == ARGV[at + 1] then
    put_vector(space, key, id, fact, digest, ARGV[at + 2])
    if left_ms > 0 then
      redis.call("PEXPIRE", key, left_ms)
    end
    put = put + 1
  end
end
if put > 0 and left_ms > 0 and is_search then
  redis.call("HSET", postings, "#e", "0") -- the next commit renews all documents
end
return put
