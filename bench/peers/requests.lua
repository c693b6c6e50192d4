-- Requests from a file, for wrk, in an order that is the same in every run. Argument: the file. Records end with \30 and
-- have the fields method, path, body and headers, each with \31 behind it; a header is a line "name: value".

local requests = {}

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local text = file:read("*a")
  file:close()
  for record in text:gmatch("([^\30]+)\30") do
    local fields = {}
    for field in record:gmatch("([^\31]*)\31") do
      fields[#fields + 1] = field
    end
    local headers = {}
    for name, value in fields[4]:gmatch("([^\n:]+): ([^\n]+)") do
      headers[name] = value
    end
    local body = fields[3] ~= "" and fields[3] or nil
    requests[#requests + 1] = wrk.format(fields[1], fields[2], headers, body)
  end
  math.randomseed(1)
end

function request()
  return requests[math.random(#requests)]
end
