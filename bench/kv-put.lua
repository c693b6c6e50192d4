-- The requests of kv-put.ts, for wrk. Arguments: agent id, key, name of the run.

local requests = {}
local body =
  '{"value":{"task":"summarise-%04d","state":"running","step":12,"of":40,"note":"waits for the next page"}}'

function init(args)
  local headers = {
    ["x-agent-id"] = args[1],
    ["x-api-key"] = args[2],
    ["content-type"] = "application/json",
  }
  math.randomseed(1)
  for n = 0, 999 do
    local path = string.format("/v1/kv/bench/key-%04d", n)
    requests[n + 1] = wrk.format("PUT", path, headers, string.format(body, n))
  end
end

function request()
  return requests[math.random(1000)]
end
