-- The requests of audit-append.ts, for wrk. Arguments: agent id, key, name of the run.

local requests = {}
local n = 0
local body = '{"action":"tool.called","workflow_id":"wf-%04d","metadata":'
  .. '{"tool":"search","query":"weather in Lisbon","tokens":1234,"duration_ms":412,"cached":false}}'

function init(args)
  local headers = {
    ["x-agent-id"] = args[1],
    ["x-api-key"] = args[2],
    ["content-type"] = "application/json",
  }
  for i = 0, 999 do
    requests[i + 1] = wrk.format("POST", "/v1/audit", headers, string.format(body, i))
  end
end

function request()
  n = n + 1
  return requests[n % 1000 + 1]
end
