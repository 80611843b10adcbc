-- Answers a refusal where an ACL forbids the user one of these commands on the key. Asked
-- before the first write for those that follow it, since a script that is stopped half-way
-- keeps what it wrote. Redis 6 cannot be asked, and stops there.
local function forbidden(key, ...)
  if redis.acl_check_cmd then
    for _, command in ipairs({ ... }) do
      if not redis.acl_check_cmd(command, key) then
        return "NOPERM the user may not run " .. command
      end
    end
  end
  return nil
end
