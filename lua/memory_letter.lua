--[[
memory_letter: note that a conversation could not be read for facts, or that it could after all.

KEYS
  1  generation  text    what was begun and erased of the owner
  2  cleared     zset    the owner's conversations that were cleared of late
  3  forgotten   zset    those whose facts were forgotten of late
  4  cursors     hash    up to where each conversation was read for facts
  5  lease       text    who reads a conversation for facts
  6  dead        stream  what could not be read: of each conversation the newest

ARGV
  1  began         int   as from facts_begin  what was erased since, is refused
  2  fence         text  a lease, or empty    demanded
  3  ttl_ms        int   >= 0                 time to live; 0 keeps forever
  4  conversation  text  a digest             which conversation
  5  expected      text  a cursor, or empty   where its cursor stands; demanded
  6  cursor        text  a cursor, or empty   where it is to stand; empty drops it
  7  letter        JSON  or empty, or =       what could not be read; empty drops it, = leaves it

RETURNS int  1 noted; 0 the cursor stands elsewhere, and nothing was written

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
local generation = KEYS[1]
local cleared = KEYS[2]
local forgotten = KEYS[3]
local cursors = KEYS[4]
local lease = KEYS[5]
local dead = KEYS[6]
local began = tonumber(ARGV[1])
local fence = ARGV[2]
local ttl_ms = tonumber(ARGV[3])
local conversation = ARGV[4]
local expected = ARGV[5]
local cursor = ARGV[6]
local letter = ARGV[7]
local MOST = 100

local _, refusal = still_begun(generation, cleared, conversation, began)
if not refusal then
  _, refusal = still_begun(generation, forgotten, conversation, began)
end
if not refusal and not has_newest(lease, fence) then
  refusal = "LOST the lease"
end
local renewal = life_command(ttl_ms)
refusal = refusal or forbidden(cursors, cursor == "" and "HDEL" or "HSET", renewal)
  or forbidden(dead, renewal)
  or letter ~= "=" and forbidden(dead, "XDEL") or nil
  or letter ~= "=" and letter ~= "" and forbidden(dead, "XADD") or nil
if refusal then
  return redis.error_reply(refusal)
end
local letters = redis.call("XRANGE", dead, "-", "+")
local stands = redis.call("HGET", cursors, conversation) or ""
if stands ~= expected and stands ~= cursor then
  return 0
end
if cursor == "" then
  redis.call("HDEL", cursors, conversation)
else
  redis.call("HSET", cursors, conversation, cursor)
end
for _, entry in ipairs(letter ~= "=" and letters or {}) do
  if entry[2][2] == conversation then
    redis.call("XDEL", dead, entry[1])
  end
end
if letter ~= "" and letter ~= "=" then
  redis.call("XADD", dead, "MAXLEN", MOST, "*", "conversation", conversation, "letter", letter)
end
set_life(ttl_ms, cursors, dead)
return 1
