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
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
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
local put = {}
for at = first_of_part, #ARGV, 3 do
  local id, text = ARGV[at], redis.call("HGET", facts, ARGV[at])
  local fact
  if text then
    fact, refusal = parse_fact(text)
    if refusal then
      return redis.error_reply(refusal)
    end
  end
  if fact and fact.revision == ARGV[at + 1] then
    local key = KEYS[first_of_vector + (at - first_of_part) / 3]
    table.insert(put, { id = id, key = key, fact = fact, vector = ARGV[at + 2] })
  end
end
local left_ms = redis.call("PTTL", facts)
local is_short = engine_of(space) == "search" and left_ms > 0
if #put > 0 and left_ms > 0 then
  -- A vector has to live no longer than its fact.
  refusal = forbidden(put[1].key, "PEXPIRE", is_short and "HSET" or nil)
    or is_short and forbidden(postings, "HSET") or nil
end
if refusal then
  return redis.error_reply(refusal)
end
if #put > 0 and is_short then
  redis.call("HSET", postings, "#e", "0") -- the next commit renews all documents
end
for _, one in ipairs(put) do
  local key = one.key
  put_vector(space, key, one.id, one.fact, digest, one.vector)
  if left_ms > 0 then
    redis.call("PEXPIRE", key, left_ms)
  end
end
return #put
