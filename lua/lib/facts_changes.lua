-- What one change does to the facts of an owner. `keys` has the keys by their names, `spaces`
-- where vectors lie, and a change has its key in each of them. Each function answers what became
-- of it: "1" done, "0" nothing to do, or the id of the fact that was there already; what the
-- log of operations needs to undo it; and of a fact that goes what the index has of it.

-- Without a vector, the fact was there when this began; where it went, there is nothing to do.
local function add_fact(keys, change, spaces, owner)
  local fact = parse_fact(change.record)
  local known = redis.call("HGET", keys.norms, fact.norm)
  if known and known ~= change.id and redis.call("HEXISTS", keys.facts, known) == 1 then
    return see_fact(keys, { id = known, detail = fact.observed .. fact.sources })
  end
  if redis.call("HEXISTS", keys.facts, change.id) == 1 then
    return "1"
  end
  if change.vector == "" then
    return "0"
  end
  write_fact(keys, change, fact)
  post(keys.postings, change.postings, fact.length)
  note_stored(keys.postings, fact.created)
  redis.call("ZADD", keys.order, 0, change.id)
  put_vector(spaces[1], change.vectors[1], change.id, fact, owner, change.vector)
  return "1", "added " .. change.id
end

-- Without a vector, the text is what it was. A new one is of the first space; in the others it
-- goes, until a migration puts it anew.
local function replace_fact(keys, change, spaces, owner)
  local old, fact = stored(keys, change.id), parse_fact(change.record)
  if not old then
    return "0"
  end
  free_norm(keys.norms, old.norm, change.id)
  write_fact(keys, change, fact)
  if change.vector ~= "" then
    unpost(keys.postings, { posted(change, old) })
    post(keys.postings, change.postings, fact.length)
  end
  for place, space in ipairs(spaces) do
    if change.vector == "" then
      put_times(space, change.vectors[place], change.id, fact)
    elseif place == 1 then
      put_vector(space, change.vectors[place], change.id, fact, owner, change.vector)
    else
      drop_vector(space, change.vectors[place], change.id)
    end
  end
  return "1", "replaced " .. change.id
end

local function remove_fact(keys, change, spaces)
  local text = redis.call("HGET", keys.facts, change.id)
  if not text then
    return "0"
  end
  local fact = parse_fact(text) or damaged(keys, change.id)
  free_norm(keys.norms, fact.norm, change.id)
  redis.call("HDEL", keys.facts, change.id)
  redis.call("ZREM", keys.order, change.id)
  redis.call("ZREM", keys.used, change.id)
  redis.call("HDEL", keys.uses, change.id)
  for place, space in ipairs(spaces) do
    drop_vector(space, change.vectors[place], change.id)
  end
  return "1", "removed " .. change.id, posted(change, fact)
end

local ACTS = {
  add = add_fact, replace = replace_fact, close = close_fact, remove = remove_fact,
  discard = remove_fact, see = see_fact, unsee = unsee_fact,
}

-- Makes all changes; answers what became of each, and how all of them are undone.
local function make_changes(keys, changes, spaces, owner)
  local answers, undo, gone = {}, {}, {}
  for place, change in ipairs(changes) do
    local answer, inverse, removed = ACTS[change.kind](keys, change, spaces, owner)
    answers[place] = answer
    table.insert(undo, inverse)
    table.insert(gone, removed)
  end
  if #gone > 0 then
    unpost(keys.postings, gone)
  end
  return answers, undo
end
