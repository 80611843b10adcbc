-- Answers up to which element the summary goes; 0 where there is none.
local function covered_by(summary)
  return tonumber(string.match(redis.call("GETRANGE", summary, 0, 40), "^w?%[1,(%d+),") or 0)
end
