--[[
facts_move: say in which spaces the vectors of an owner lie, if nothing was changed meanwhile.

KEYS
  1  generation  text   what was begun and erased of the owner
  2  postings    hash   the facts by their terms; the fields with # are no terms
  3  vector      text*  vectors of spaces that are left; deleted

ARGV
  1  began     int   as from facts_begin  what was erased since, is refused
  2  spaces    text  spaces               where they lie; demanded
  3  changes   int   >= -1                how often facts were changed; demanded, unless -1
  4  places    text  spaces               where they are said to lie from now on

RETURNS int  1 said; 0 the spaces, or facts, were changed meanwhile, and nothing was written

ERRORS
  ERASED <what>  erased since `began`; nothing was written
  FORMAT         what was begun and erased cannot be read; nothing was written
]]
--# include allowed
--# include owner
--# include begun
local generation = KEYS[1]
local postings = KEYS[2]
local first_of_vector = 3
local began = tonumber(ARGV[1])
local spaces = ARGV[2]
local changes = tonumber(ARGV[3])
local places = ARGV[4]

local owner, refusal = still_begun(generation, nil, nil, began)
if not owner then
  return redis.error_reply(refusal)
end
local lying = redis.call("HGET", postings, "#v")
if lying == places and #KEYS < first_of_vector then
  return 1 -- sent again after its answer was lost
end
local changed = tonumber(redis.call("HGET", postings, "#r") or 0)
if lying ~= spaces or (changes >= 0 and changed ~= changes) then
  return 0
end
refusal = #KEYS >= first_of_vector and forbidden(postings, "HSET") or nil
if refusal then
  return redis.error_reply(refusal)
end
for at = first_of_vector, #KEYS do
  redis.call("UNLINK", KEYS[at])
end
redis.call("HSET", postings, "#v", places)
return 1
