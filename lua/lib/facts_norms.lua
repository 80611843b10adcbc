-- Which fact says what: a hash from what a fact says, in short, to the id of the one that holds.

-- Answers what a fact says by all that there is, for one that nobody can read; nil for nothing.
local function norm_of(key, id)
  local all = redis.call("HGETALL", key)
  for place = 2, #all, 2 do
    if all[place] == id then
      return all[place - 1]
    end
  end
  return nil
end

-- Lets go of what a fact says, where it is the one; answers how many were.
local function free_norm(key, norm, id)
  return norm and redis.call("HGET", key, norm) == id and redis.call("HDEL", key, norm) or 0
end
