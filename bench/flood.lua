-- Posts to one inbox. Arguments: its token.

local message

function init(args)
  local body = '{"flood":"' .. string.rep("x", 288) .. '"}'
  message = wrk.format("POST", "/hook/" .. args[1], { ["content-type"] = "application/json" }, body)
end

function request()
  return message
end
