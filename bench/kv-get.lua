-- The requests of kv-get.ts, for wrk. Arguments: agent id, key, name of the run.

local requests = {}

function init(args)
  local headers = { ["x-agent-id"] = args[1], ["x-api-key"] = args[2] }
  math.randomseed(1)
  for n = 0, 999 do
    requests[n + 1] = wrk.format("GET", string.format("/v1/kv/bench/key-%04d", n), headers)
  end
end

function request()
  return requests[math.random(1000)]
end
