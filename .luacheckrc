-- Scripts run inside the server: Lua 5.1 with its own globals, and nothing else may be global.
std = "lua51"
read_globals = { "redis", "cjson", "cmsgpack", "struct", "bit" }
globals = { "KEYS", "ARGV" }
max_line_length = 100
