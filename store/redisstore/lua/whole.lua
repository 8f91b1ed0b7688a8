-- Steps that read and write whole accounts.

local function current_bytes(a)
	if not a[LIVE] then return '' end
	local bytes = a[DIRTY] and bytes_of(a) or a[RAW]
	return a[LOG] and bytes .. ring_bytes(a) or bytes
end

-- read returns accounts. The request has the indexes of their keys.
local function read(body, base, at)
	local out, count = {ALLOWED}, byte(body, at + 1)
	for i = 1, count do
		local bytes = current_bytes(find(KEYS[base + byte(body, at + 1 + i)]))
		out[i + 1] = pack('<I4', #bytes) .. bytes
	end
	return table.concat(out)
end

-- replace writes accounts, unless one of them has changed since it was read; replace_each writes those
-- that have not. The request has, for each account, the index of its key, its old bytes, and its new bytes.
local function replace(body, base, at)
	local all, step, count = {}, byte(body, at, at + 1)
	at = at + 2
	for i = 1, count do
		local r = {unpack_from('<BI4c0I4c0', body, at)}
		local same = current_bytes(find(KEYS[base + r[1]])) == r[2]
		if same then all[#all + 1] = r elseif step == REPLACE then return DENIED end
		at = r[4]
	end
	for _, r in ipairs(all) do
		local old = touched[KEYS[base + r[1]]]
		local a, ring = blank(old[KEY]), nil
		if r[3] ~= '' then a, ring = read_account(r[3], old[KEY]) end
		a[DIRTY], a[REVISION] = true, a[REVISION] + 1
		if a[LOG] then a[LOG].whole, a[LOG].complete = string.sub(r[3], ring), true end
		touched[old[KEY]] = a
	end
	return ALLOWED
end

local steps = {[TAKE] = take, [PEEK] = take, [SETTLE] = settle, [READ] = read, [REPLACE] = replace, [REPLACE_EACH] = replace}
