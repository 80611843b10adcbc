--[[
facts_traces: drop the vectors that a fact has left, and say where else its id still stands.

KEYS
  1  facts     hash  the facts by their ids
  2  order     zset  the ids, which begin with the time
  3  norms     hash  the ids of the facts that hold, by what they say
  4  postings  hash  the facts by their terms; the fields with # are no terms
  5  used      zset  when facts were last found
  6  uses      hash  how often
  7  vector    text* where its vector would lie, in each space

ARGV
  1  id     text   of the fact
  2  space  text*  in the order of their keys

RETURNS {dropped, place, ...}
  dropped  int   vectors that it had though it is no fact any more
  place    text  the name of a key in which it still stands; of the fact itself, "facts"
]]
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
local first_of_space = 2

local function says_something()
  for _, known in ipairs(redis.call("HVALS", norms)) do
    if known == id then
      return true
    end
  end
  return false
end

local function has_words()
  local all = redis.call("HGETALL", postings)
  for place = 1, #all, 2 do
    if string.sub(all[place], 1, 1) ~= "#" and record_of(all[place + 1], id) then
      return true
    end
  end
  return false
end

local answer = { 0 }
local function note(place, stands)
  if stands then
    table.insert(answer, place)
  end
end

note("facts", redis.call("HEXISTS", facts, id) == 1)
if #answer > 1 then
  return answer
end
note("order", redis.call("ZSCORE", order, id))
note("norms", says_something())
note("postings", has_words())
note("used", redis.call("ZSCORE", used, id))
note("uses", redis.call("HEXISTS", uses, id) == 1)
for at = first_of_space, #ARGV do
  local key = KEYS[first_of_vector + at - first_of_space]
  answer[1] = answer[1] + drop_vector(ARGV[at], key, id)
end
return answer
