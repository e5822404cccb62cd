-- What wrk sends. Arguments: the mode, the key, a seed, and what the mode needs.

local mode, auth, host, first, last, path, writes
local json = "application/json"
local sent = 0

local function message(method, where, body)
  local head = method .. " " .. where .. " HTTP/1.1\r\nHost: " .. host .. "\r\nAuthorization: " .. auth .. "\r\n"
  if body then
    head = head .. "Content-Type: " .. json .. "\r\nContent-Length: " .. #body .. "\r\n"
  end
  return head .. "\r\n" .. (body or "")
end

local function read_one()
  return message("GET", path .. "/" .. math.random(first, last))
end

local function list_page()
  return message("GET", path .. "?page=" .. math.random(1, 40))
end

local function create()
  sent = sent + 1
  local body = string.format(
    '{"name": "Made by the bench %d", "parentId": %d, "description": "<p>One of many, to be deleted soon.</p>"}',
    sent, math.random(first, last))
  return message("POST", path, body)
end

local function update()
  sent = sent + 1
  local body = string.format('{"description": "<p>Changed by the bench, %d.</p>"}', sent * 100000 + math.random(1, 99999))
  return message("POST", path .. "/" .. math.random(first, last), body)
end

-- Three of five writes are updates; a fifth of the reads are lists.
local function mixed()
  local dice = math.random(1, 1000)
  if dice <= writes * 6 then return update() end
  if dice <= writes * 10 then return create() end
  if math.random(1, 5) == 1 then return list_page() end
  return read_one()
end

-- The headers of a program that is traced: no two requests have the same.
local function traced()
  sent = sent + 1
  return string.format("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\ntraceparent: 00-%032x-%016x-01\r\nX-Request-Id: bench-%d\r\n\r\n",
    path, host, auth, sent, sent, sent)
end

local modes = { traced = traced, random = read_one, pages = list_page, create = create, update = update, mixed = mixed }

function init(args)
  mode, auth = args[1], "Bearer " .. args[2]
  math.randomseed(tonumber(args[3]))
  host = wrk.headers["Host"]
  path, first, last, writes = args[4], tonumber(args[5] or 0), tonumber(args[6] or 0), tonumber(args[7] or 0)
  if mode == "fixed" then
    wrk.path = path
    wrk.headers["Authorization"] = auth
    if args[5] then wrk.headers["If-None-Match"] = args[5] end
  end
end

-- wrk looks for `request` before it calls init: a fixed load keeps its own, which is made once.
if os.getenv("LOAD_MODE") ~= "fixed" then
  function request() return modes[mode]() end
end

dofile(os.getenv("LOAD_FIGURES"))
