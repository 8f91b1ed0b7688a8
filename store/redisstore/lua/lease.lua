-- Leases. One is what a caller has set aside to spend by itself until it ends: a
-- charge as it was asked for. Until it is ended, or its time is over, limits count
-- it as if it was taken just now. Then what was used of it is charged: all of it,
-- if nobody says.

function F.read_leases(a, raw, at)
	a[LEASES] = {}
	for i = 1, a[LEASED] do
		local lease = {unpack_from('<c16dI4I2c0', raw, at)} -- its name, when it ends, what was asked for
		at, lease.op = lease[5], parse(lease[4])
		a[LEASES][i] = lease
	end
end

function F.lease_bytes(leases)
	local out = {}
	for i, lease in ipairs(leases) do out[i] = pack('<c16dI4I2c0', lease[1], lease[2], lease[3], #lease[4], lease[4]) end
	return table.concat(out)
end

-- leased returns how much is set aside.
function F.leased(leases)
	local h, l = 0, 0
	for _, lease in ipairs(leases) do h, l = F.plus(h, l, lease.op[3][3], lease.op[3][4]) end
	return h, l
end

-- fits reports whether a bucket has room for a backlog and what is set aside of it.
function F.fits(leases, l, h, low, p, pl)
	for _, lease in ipairs(leases) do
		for k = 7, #lease.op[3] do
			local of = lease.op[3][k]
			if of[2] == l[2] then h, low, p, pl = F.sum(h, low, p, pl, of[7], of[8], of[9], of[10], l[5], l[6]) end
		end
	end
	return not F.longer(h, low, p, pl, l[11], l[12], l[13], l[14])
end

-- covers reports whether a lease has all limits of a charge.
function F.covers(lease, charge)
	for k = 7, #charge do
		local found = false
		for j = 7, #lease.op[3] do found = found or lease.op[3][j][2] == charge[k][2] end
		if not found then return false end
	end
	return true
end

-- expire charges the leases whose time is over. One that does not know all limits
-- which are asked for must be charged in Go: these have changed.
function F.expire(a, charge)
	local leases = a[LEASES]
	for i = #leases, 1, -1 do
		local lease = leases[i]
		local over = not F.ahead(lease[2], lease[3])
		if not over and not F.covers(lease, charge) then return UNREADY end
		if over then
			plans, told = 0, 1
			local _, trouble = weigh(a, lease.op[3])
			if trouble then return trouble end
			F.drop(a, i)
			enter(a, lease.op[3])
			carry_out()
		end
	end
end

function F.drop(a, i)
	table.remove(a[LEASES], i)
	if #a[LEASES] == 0 then a[LEASES] = nil end
end

function F.lease(a, op)
	if not a[LIVE] then bear(a) end
	local endh, endl = F.plus(F.h, F.l, op.termh, op.terml)
	a[LEASES] = a[LEASES] or {}
	table.insert(a[LEASES], {op.lease, endh, endl, op.asked, op = op})
	for i = 1, plans, 10 do F.in_use_until(a, F.plus(planned[i + 8], planned[i + 9], op.termh, op.terml)) end
	for k = 7, #op[3] do
		local l = op[3][k]
		if l[1] == LOGGING then F.in_use_until(a, F.plus(endh, endl, l[7], l[8])) end
	end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, F.h, F.l, a[REVISION] + 1
end

-- end_lease forgets a lease. It returns false if that was charged before.
function F.end_lease(a, name)
	for i, lease in ipairs(a[LEASES] or {}) do
		if lease[1] == name then
			F.drop(a, i)
			a[DIRTY], a[REVISION] = true, a[REVISION] + 1
			return true
		end
	end
	return false
end
