-- What wrk sends. Arguments: the mode, the token, a seed, the first and the last id, and for each kind of request four more:
-- its weight, method, path and body. In path and body, {id} becomes a random id and {n} a number that has not been sent yet.

local auth, host, first, last
local kinds, weights = {}, 0
local sent = 0

local function filled(text)
  return (text:gsub("{(%a+)}", function(name)
    if name == "id" then return tostring(math.random(first, last)) end
    if name == "n" then return tostring(sent) end
  end))
end

function init(args)
  auth, first, last = "Bearer " .. args[2], tonumber(args[4]), tonumber(args[5])
  math.randomseed(tonumber(args[3]))
  sent = tonumber(args[3]) * 1000000
  host = wrk.headers["Host"]
  for at = 6, #args, 4 do
    weights = weights + tonumber(args[at])
    table.insert(kinds, { upto = weights, method = args[at + 1], path = args[at + 2], body = args[at + 3] })
  end
end

function request()
  local dice, at = math.random(1, weights), 1
  while dice > kinds[at].upto do at = at + 1 end
  local kind = kinds[at]
  sent = sent + 1
  local head = kind.method .. " " .. filled(kind.path) .. " HTTP/1.1\r\nHost: " .. host .. "\r\nAuthorization: " .. auth .. "\r\n"
  if kind.body == "" then return head .. "\r\n" end
  local body = filled(kind.body)
  return head .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
end

dofile(os.getenv("LOAD_FIGURES"))
