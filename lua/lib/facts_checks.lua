-- What is checked before a commit writes anything.
local FIELDS_OF_A_CHANGE = 8

-- Reads the changes: of each its kind, the id, the revision that the fact has to have, and what
-- it needs; and the key of its vector in each space.
local function read_changes(first, vectors, spaces)
  local changes = {}
  for at = first, #ARGV, FIELDS_OF_A_CHANGE do
    local change = {
      kind = ARGV[at], id = ARGV[at + 1], revision = ARGV[at + 2], record = ARGV[at + 3],
      terms = ARGV[at + 4], postings = ARGV[at + 5], vector = ARGV[at + 6],
      detail = ARGV[at + 7], vectors = {},
    }
    for place = 1, #spaces do
      change.vectors[place] = KEYS[vectors + (#changes + 1) * #spaces + place - 1]
    end
    table.insert(changes, change)
  end
  return changes
end

-- Answers a refusal where a key holds something else: a write would fail after others.
local function mistyped(keys, spaces, vectors)
  local reads = {
    { "ZCARD", keys.order }, { "ZCARD", keys.used }, { "HLEN", keys.uses },
    { "HLEN", keys.cursors }, { "XLEN", keys.ops },
  }
  for place, space in ipairs(spaces) do
    local engine = engine_of(space)
    if engine ~= "search" then
      table.insert(reads, { engine == "plain" and "HLEN" or "VCARD", KEYS[vectors + place - 1] })
    end
  end
  for _, read in ipairs(reads) do
    local reply = redis.pcall(read[1], read[2])
    if type(reply) == "table" and reply.err then
      return reply.err
    end
  end
  return nil
end
