--[[
facts_commit: change facts of an owner, all that is given or nothing.

KEYS
  1  generation  text   what was begun and erased of the owner
  2  cleared     zset   the owner's conversations that were cleared of late
  3  forgotten   zset   those whose facts were forgotten of late
  4  facts       hash   the facts by their ids
  5  order       zset   the ids, which begin with the time
  6  norms       hash   the ids of the facts that hold, by what they say
  7  postings    hash   the facts by their terms; the fields with # are no terms
  8  used        zset   when facts were last found
  9  uses        hash   how often
  10 cursors     hash   up to where each conversation was read for facts
  11 lease       text   who reads a conversation for facts
  12 ops         stream what changed, for an undo
  13 dead        stream what could not be read
  14 memory      hash   the working memory; lives as long as the facts
  15 vector      text*  where vectors lie: one key for each space, then for each change

ARGV
  1  began         int    as from facts_begin   what was erased since, is refused
  2  token         text   8 characters          the idempotency key
  3  fence         text   a lease, or empty     demanded
  4  digest        text   of the owner          for the search index
  5  spaces        text   or empty              where vectors lie already; demanded
  6  target        text   one space             where the vectors of new facts go
  7  ttl_ms        int    >= -1                 time to live; 0 keeps forever, -1 leaves it
  8  conversation  text   a digest, or empty    that it is made of, and whose cursor moves
  9  expected      text   a cursor, empty or =  where it stands; demanded, unless =
  10 cursor        text   the same              where it is to stand; = leaves it
  11 operation     text   a name, or empty      its name in `ops`; empty writes nothing there
  12 note          JSON   or empty              stands in `ops`
  13 change        bytes* eight for each        as lib/facts_checks.lua reads them

RETURNS {"done", renewal, answer, ...}, or {what, detail} where nothing was written
  renewal  int   1 where the search documents of the owner need another time to live
  answer   text  for each change: 1 done, 0 there is no such fact, or the id of the fact that
                 was there already
  what     text  in the way: "spaces" or "cursor" (the detail says what they are now),
                 "changed" or "taken" (the detail says at which change)

ERRORS
  ERASED <what>    erased, cleared or forgotten since `began`; nothing was written
  LOST             `fence` is not of the newest grant; nothing was written
  CORRUPT, FORMAT  what is stored cannot be read; nothing was written
]]
--# include allowed
--# include life
--# include owner
--# include begun
--# include queue
--# include lease
--# include facts_record
--# include facts_postings
--# include facts_unpost
--# include facts_vectors
--# include facts_norms
--# include facts_known
--# include facts_changes
--# include facts_checks
--# include facts_allowed
--# include facts_fit
--# include facts_ending
local generation = KEYS[1]
local cleared = KEYS[2]
local forgotten = KEYS[3]
local facts = KEYS[4]
local order = KEYS[5]
local norms = KEYS[6]
local postings = KEYS[7]
local used = KEYS[8]
local uses = KEYS[9]
local cursors = KEYS[10]
local lease = KEYS[11]
local ops = KEYS[12]
local dead = KEYS[13]
local memory = KEYS[14]
local first_of_vector = 15
local began = tonumber(ARGV[1])
local token = ARGV[2]
local fence = ARGV[3]
local digest = ARGV[4]
local spaces = ARGV[5]
local target = ARGV[6]
local ttl_ms = tonumber(ARGV[7])
local conversation = ARGV[8]
local expected = ARGV[9]
local cursor = ARGV[10]
local operation = ARGV[11]
local note = ARGV[12]
local first_of_change = 13

local keys = {
  facts = facts, order = order, norms = norms, postings = postings, used = used, uses = uses,
  cursors = cursors, ops = ops, dead = dead, memory = memory,
}
local known = read_generation(generation)
local again = known and answers_of(postings, token)
if again then
  return done(postings, again, ttl_ms, known.now)
end
local owner, refusal = still_begun(generation, nil, nil, began)
if not refusal and not has_newest(lease, fence) then
  refusal = "LOST the lease"
end
if refusal then
  return redis.error_reply(refusal)
end
local what, detail = in_the_way(keys, spaces, conversation, expected)
if what then
  return { what, detail }
end
local places = words(spaces ~= "" and spaces or target)
local changes = read_changes(first_of_change, first_of_vector, places)
refusal, what, detail = all_fit(keys, changes, { cleared, forgotten }, conversation, began)
refusal = refusal or mistyped(keys, places, first_of_vector)
  or commit_forbidden(keys, changes, places, first_of_vector, ttl_ms, cursor, operation)
if refusal then
  return redis.error_reply(refusal)
end
if what then
  return { what, tostring(detail) }
end

local held = redis.call("HGET", postings, "#n")
local answers, undo = make_changes(keys, changes, places, digest)
if operation == "" and changes_nothing(answers, conversation, cursor) then
  return done(postings, answers, ttl_ms, owner.now)
end
write_places(keys, places, conversation, cursor)
log_operation(ops, operation, note, undo)
remember_answers(postings, token, answers)
renew(keys, ttl_ms, places, first_of_vector)
renew_documents(postings, changes, places, ttl_ms, owner.now, held)
return done(postings, answers, ttl_ms, owner.now)
