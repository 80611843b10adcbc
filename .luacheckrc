-- Scripts run inside the server: Lua 5.1 with the globals it gives them, and no other.
-- `make check` lints each script with the shared functions of lua/lib in place.
std = "lua51"
read_globals = { "redis", "cjson", "cmsgpack", "struct", "bit" }
globals = { "KEYS", "ARGV" }
max_line_length = 100
