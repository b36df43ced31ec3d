-- Sends the calls of `python -m lab calls`, each once, and stops where there are no more:
--   wrk -t1 -c8 -d12s --latency -s lab/bench/wrk.lua http://127.0.0.1:PORT -- calls.txt
local calls, sent = {}, 0

function init(arguments)
  for line in io.lines(arguments[1]) do
    calls[#calls + 1] = line
  end
end

function request()
  sent = sent + 1
  if sent > #calls then
    wrk.thread:stop()
    return wrk.format("GET", "/healthz")
  end
  local token, body = calls[sent]:match("^(%S+) (.*)$")
  local headers = { ["Authorization"] = "Bearer " .. token, ["Content-Type"] = "application/json" }
  return wrk.format("POST", "/api/relay/execute", headers, body)
end
