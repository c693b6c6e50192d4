-- The requests of rate-check-hot.ts, for wrk. Arguments: agent id, key, name of the run.

local requests = {}

function init(args)
  local headers = { ["x-api-key"] = args[2], ["content-type"] = "application/json" }
  math.randomseed(1)
  for n = 0, 0 do
    local body = string.format('{"key":"host-%04d.example.com","limit":1000000000,"windowSeconds":86400}', n)
    requests[n + 1] = wrk.format("POST", "/api/rate-limit/check", headers, body)
  end
end

function request()
  return requests[math.random(#requests)]
end
