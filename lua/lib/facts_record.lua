-- A fact as it is stored: a line of what scripts have to know, and JSON that they leave alone.
--   1 <revision> <created> <observed> <from> <to> <expired> <before> <kind> <pinned> <by>
--   <norm> <conversation> <terms> <length> <source> ...
-- Times are milliseconds since 1970, and OPEN where there is no end; `-` stands for nothing.
-- src/turnstore/facts/_storing/record.py says what the fields mean.
local OPEN = "9000000000000000"
local SOURCES_KEPT = 64
local FIELDS = {
  "revision", "created", "observed", "from", "to", "expired", "before", "kind", "pinned", "by",
  "norm", "conversation", "terms", "length",
}
local RECORD = "^1 (%d+) (%d+) (%d+) (%-?%d+) (%-?%d+) (%d+) (%-?%d+) (%S+) ([01]) (%S+)"
  .. " (%S+) (%S+) (%d+) (%d+)([^\n]*)(\n.*)$"

-- Answers a fact as a table of texts, or nil and a refusal.
local function parse_fact(text)
  local parts = { string.match(text, RECORD) }
  if #parts == 0 then
    local format = string.match(text, "^(%d+) ")
    if format and format ~= "1" then
      return nil, "FORMAT " .. format
    end
    return nil, "CORRUPT a fact does not begin with a line of ours"
  end
  local fact = { sources = parts[#FIELDS + 1], body = parts[#FIELDS + 2] }
  for place, field in ipairs(FIELDS) do
    fact[field] = parts[place]
  end
  return fact
end

-- Writes a fact that was changed: each change has a revision of its own.
local function write_changed(key, id, fact)
  fact.revision = string.format("%d", fact.revision + 1)
  local line = { "1" }
  for _, field in ipairs(FIELDS) do
    table.insert(line, fact[field])
  end
  redis.call("HSET", key, id, table.concat(line, " ") .. fact.sources .. fact.body)
end

-- Adds the sources that are not among those of a fact, and answers which these are.
local function add_sources(fact, sources)
  local added, kept = "", {}
  for source in string.gmatch(sources, "%S+") do
    if not string.find(fact.sources .. " ", " " .. source .. " ", 1, true) then
      fact.sources = fact.sources .. " " .. source
      added = added .. " " .. source
    end
  end
  for source in string.gmatch(fact.sources, "%S+") do
    table.insert(kept, source)
  end
  local first = math.max(#kept - SOURCES_KEPT + 1, 1)
  fact.sources = #kept > 0 and " " .. table.concat(kept, " ", first) or ""
  return added
end

local function drop_sources(fact, sources)
  for source in string.gmatch(sources, "%S+") do
    local start, stop = string.find(fact.sources .. " ", " " .. source .. " ", 1, true)
    if start then
      fact.sources = string.sub(fact.sources, 1, start - 1) .. string.sub(fact.sources, stop)
    end
  end
end
