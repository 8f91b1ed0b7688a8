-- Steps that read and write whole accounts.

local function current_bytes(a)
	if not a[LIVE] then return '' end
	return a[DIRTY] and bytes_of(a) or a[RAW]
end

-- read returns accounts. The request has, for each account, the indexes of its key and its log's
-- key.
local function read(body, base, at)
	local out, count = {ALLOWED}, byte(body, at + 1)
	at = at + 2
	for i = 1, count do
		local key, ring = byte(body, at, at + 1)
		local a = find(KEYS[base + key], KEYS[base + ring])
		local bytes, log = current_bytes(a), a[LIVE] and a[LOG] and ring_bytes(a) or ''
		out[i + 1], at = pack('<I4', #bytes) .. bytes .. pack('<I4', #log) .. log, at + 2
	end
	return table.concat(out)
end

-- replace writes accounts, unless one of them has changed since it was read; replace_each writes those
-- that have not. The request has, for each account, the indexes of its key and its log's key, its old
-- bytes, its new bytes, and the bytes of its log.
local function replace(body, base, at)
	local all, step, count = {}, byte(body, at, at + 1)
	at = at + 2
	for i = 1, count do
		local r = {unpack_from('<BBI4c0I4c0I4c0', body, at)}
		local same = current_bytes(find(KEYS[base + r[1]], KEYS[base + r[2]])) == r[3]
		if same then all[#all + 1] = r elseif step == REPLACE then return DENIED end
		at = r[6]
	end
	for _, r in ipairs(all) do
		local old = touched[KEYS[base + r[1]]]
		local a = r[4] ~= '' and read_account(r[4], old[KEY]) or {false, false, '', old[KEY], false, {}, false, 0, 0, nowh, nowl, NO_EPOCH, 0}
		a[DIRTY], a[RING], a[REVISION] = true, old[RING], a[REVISION] + 1
		if a[LOG] then a[LOG].whole = r[5] end
		touched[old[KEY]], order[#order + 1], old[DIRTY] = a, a, false
	end
	return ALLOWED
end

local steps = {[TAKE] = take, [PEEK] = take, [SETTLE] = settle, [READ] = read, [REPLACE] = replace, [REPLACE_EACH] = replace}
