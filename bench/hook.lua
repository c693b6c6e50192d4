-- The requests of hook.ts, for wrk. Arguments: agent id, key, token of the inbox.

local message

function init(args)
  local head =
    '{"id":"evt_1PqR8x2eZvKYlo2C","type":"invoice.paid","created":1763712000,"data":{"object":{"note":"'
  local body = head .. string.rep("x", 296 - #head) .. '"}}}'
  message = wrk.format("POST", "/hook/" .. args[3], { ["content-type"] = "application/json" }, body)
end

function request()
  return message
end
