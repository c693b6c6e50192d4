-- The requests of schedule-create.ts, for wrk. Arguments: agent id, key, name of the run.

local whole = ""
local body = '{"callback_url":"https://example.com/wake",'
  .. '"callback_payload":{"order":7,"note":"remind the customer"},"fire_at":"9999-01-01T00:00:00Z"}'

function init(args)
  local headers = {
    ["x-agent-id"] = args[1],
    ["x-api-key"] = args[2],
    ["content-type"] = "application/json",
  }
  whole = wrk.format("POST", "/v1/schedules", headers, body)
end

function request()
  return whole
end
