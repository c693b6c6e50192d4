-- The requests of audit-append-plain.ts, for wrk. Arguments: agent id, key, name of the run.

local whole = ""
local body = '{"action":"tool.called","metadata":'
  .. '{"tool":"search","query":"weather in Lisbon","tokens":1234,"duration_ms":412,"cached":false,"attempt":1}}'

function init(args)
  local headers = {
    ["x-agent-id"] = args[1],
    ["x-api-key"] = args[2],
    ["content-type"] = "application/json",
  }
  whole = wrk.format("POST", "/v1/audit", headers, body)
end

function request()
  return whole
end
