-- The requests of kv-put-new.ts, for wrk. Arguments: agent id, key, name of the run.

local before, after, bodies = "", "", {}
local n = 0
local body =
  '{"value":{"task":"summarise-%04d","state":"running","step":12,"of":40,"note":"waits for the next page"}}'

function init(args)
  local headers = {
    ["x-agent-id"] = args[1],
    ["x-api-key"] = args[2],
    ["content-type"] = "application/json",
  }
  -- All bodies have one length, so only the number in the path changes: cheaper than wrk.format for each.
  local whole = wrk.format("PUT", "/v1/kv/bench/" .. args[3] .. "-@", headers, string.format(body, 0))
  local at = string.find(whole, "@", 1, true)
  local head_end = string.find(whole, "\r\n\r\n", 1, true) + 3
  before = string.sub(whole, 1, at - 1)
  after = string.sub(whole, at + 1, head_end)
  for i = 0, 9999 do
    bodies[i + 1] = string.format(body, i)
  end
end

function request()
  n = n + 1
  return before .. n .. after .. bodies[n % 10000 + 1]
end
