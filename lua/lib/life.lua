-- The command by which `set_life` sets a life, for an ACL.
local function life_command(ttl_ms)
  return ttl_ms > 0 and "PEXPIRE" or "PERSIST"
end

-- Lets keys live so long from now on; 0 keeps them for ever.
local function set_life(ttl_ms, ...)
  for _, key in ipairs({ ... }) do
    if ttl_ms > 0 then
      redis.call("PEXPIRE", key, ttl_ms)
    else
      redis.call("PERSIST", key)
    end
  end
end
