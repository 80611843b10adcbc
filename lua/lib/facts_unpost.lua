-- How facts leave the lexical index of lib/facts_postings.lua.
local function record_of(records, id)
  local start = 0
  repeat
    start = string.find(records, id, start + 1, true)
  until not start or (start - 1) % RECORD_BYTES == 0
  return start
end

-- Takes the records of facts out of those of one term; `found` counts at each what there was.
local function unpost_term(key, term, records, facts)
  local cuts = {}
  for _, fact in ipairs(facts) do
    local start = record_of(records, fact.id)
    if start then
      local high, low = string.byte(records, start + RECORD_BYTES - 2, start + RECORD_BYTES - 1)
      fact.length = fact.length or high * 256 + low
      table.insert(cuts, start)
      fact.found = fact.found + 1
    end
  end
  table.sort(cuts)
  local kept, at = {}, 1
  for _, start in ipairs(cuts) do
    table.insert(kept, string.sub(records, at, start - 1))
    at = start + RECORD_BYTES
  end
  local left = table.concat(kept) .. string.sub(records, at)
  if left == "" then
    redis.call("HDEL", key, term)
  elseif #cuts > 0 then
    redis.call("HSET", key, term, left)
  end
end

-- What the index has of a fact, for `unpost`.
local function posted(change, fact)
  local terms, length = tonumber(fact.terms), tonumber(fact.length)
  return { id = change.id, list = change.terms, terms = terms, length = length }
end

-- Takes facts out of the index, all at once: a term that many have is written but once. `list`
-- are the terms that the text has now; where an earlier version found others in it, or nobody
-- can read it, all terms are looked through.
local function unpost(key, facts)
  local of_term, length = {}, 0
  for _, fact in ipairs(facts) do
    fact.found = 0
    each_term(fact.list, 0, function(term)
      of_term[term] = of_term[term] or {}
      table.insert(of_term[term], fact)
    end)
  end
  for term, having in pairs(of_term) do
    unpost_term(key, term, redis.call("HGET", key, term) or "", having)
  end
  local others = {}
  for _, fact in ipairs(facts) do
    if fact.found ~= fact.terms then
      table.insert(others, fact)
    end
  end
  if #others > 0 then
    each_posted(key, function(term, records)
      unpost_term(key, term, records, others)
    end)
  end
  for _, fact in ipairs(facts) do
    length = length + (fact.length or 0)
  end
  count_fact(key, -#facts, -length)
end
