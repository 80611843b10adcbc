-- Whether the changes of a commit can be made; looked at before anything is written.

-- Answers a refusal where a conversation was cleared, or its facts or an exchange forgotten.
local function was_forgotten(lists, member, began)
  for _, list in ipairs(lists) do
    local since = redis.call("ZSCORE", list, member)
    if since and tonumber(since) >= began then
      return "ERASED conversation"
    end
  end
  return nil
end

-- Looks at one change. Answers a refusal, or nil and what is in its way: "changed", where the
-- fact is not of the revision demanded, or "taken", where another one says what it is to say.
local function unfit(keys, change, lists, began)
  local text = redis.call("HGET", keys.facts, change.id)
  local fact, refusal
  if text then
    fact, refusal = parse_fact(text)
  end
  if change.kind == "discard" and refusal and string.find(refusal, "^CORRUPT") then
    refusal = nil
  end
  local new = change.record ~= "" and parse_fact(change.record)
  if new and not refusal then
    refusal = was_forgotten(lists, new.conversation, began)
      or was_forgotten(lists, new.norm, began)
  end
  if refusal then
    return refusal
  end
  if change.revision ~= "" and (not fact or fact.revision ~= change.revision) then
    return nil, "changed"
  end
  local known = new and new.expired == OPEN and redis.call("HGET", keys.norms, new.norm)
  local other = known and known ~= change.id and redis.call("HGET", keys.facts, known)
  if other then
    fact, refusal = parse_fact(other)
    return not fact and refusal or nil, change.kind == "replace" and "taken" or nil
  end
  return nil
end

-- Looks at all changes. Answers a refusal, or nil and what is in the way of which change.
local function all_fit(keys, changes, lists, conversation, began)
  local gone = was_forgotten(lists, conversation, began)
  if gone then
    return gone
  end
  for number, change in ipairs(changes) do
    local refusal, what = unfit(keys, change, lists, began)
    if refusal or what then
      return refusal, what, number
    end
  end
  return nil
end

-- Answers what is in the way of all of them, and its state; nil where nothing is.
local function in_the_way(keys, spaces, conversation, expected)
  local lying = redis.call("HGET", keys.postings, "#v") or ""
  if lying ~= spaces then
    return "spaces", lying
  end
  local stands = conversation ~= "" and redis.call("HGET", keys.cursors, conversation) or ""
  if expected ~= "=" and stands ~= expected then
    return "cursor", stands
  end
  return nil
end
