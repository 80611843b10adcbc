--[[
fold_begin: become the one who folds turns into the summary, and read it.

KEYS
  1  summary   text  of the oldest turns
  2  lease     text  who folds now; expires by itself

ARGV
  1  token     text        tells this one from others
  2  lease_ms  int   >= 1  how long at most

RETURNS {granted, summary}
  granted  int    1 the lease is taken; 0 somebody else folds
  summary  bytes  as `fold` stored it; empty where there is none
]]
local summary = KEYS[1]
local lease = KEYS[2]
local token = ARGV[1]
local lease_ms = tonumber(ARGV[2])

local granted = redis.call("SET", lease, token, "NX", "PX", lease_ms)
return { granted and 1 or 0, redis.call("GET", summary) or "" }
