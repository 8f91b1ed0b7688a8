-- Leases. A lease is a charge from which a node may take without asking Redis. Until the node ends
-- the lease, or its term is over, the limits count the charge as if it was taken just now. When the
-- node ends it, what the node has used of it is charged. If the term is over first, the whole charge
-- is charged, in Go.

const MOST_LEASES 32

function F.read_leases(a, raw, at)
	a[LEASES] = {}
	for i = 1, a[LEASED] do
		local lease = {unpack_from('<c16dI4I2c0', raw, at)} -- the name, the end, the request
		at, lease.charge = lease[5], parse(lease[4])[3]
		a[LEASES][i] = lease
	end
end

function F.lease_bytes(leases)
	local out = {}
	for i, lease in ipairs(leases) do out[i] = pack('<c16dI4I2c0', lease[1], lease[2], lease[3], #lease[4], lease[4]) end
	return table.concat(out)
end

-- limit_of returns the limit of a charge with a name.
function F.limit_of(charge, name)
	for k = 7, #charge do
		if charge[k][2] == name then return charge[k] end
	end
end

-- stale reports whether the term of a lease is over, or the charge has a limit that replaces one
-- of the lease's.
function F.stale(leases, charge)
	for _, lease in ipairs(leases) do
		if not F.ahead(lease[2], lease[3]) then return true end
		for k = 7, #lease.charge do
			local of = lease.charge[k]
			for j = 7, #charge do
				local l = charge[j]
				if l[3] == of[3] and not F.limit_of(charge, of[2]) and not F.limit_of(lease.charge, l[2]) then return true end
			end
		end
	end
	return false
end

-- leased returns how much of a limit is leased. All sliding logs of a key share one log.
function F.leased(leases, name, kind)
	local h, l = 0, 0
	for _, lease in ipairs(leases) do
		local charge = lease.charge
		if kind == LOGGING and charge[6] or F.limit_of(charge, name) then h, l = F.plus(h, l, charge[3], charge[4]) end
	end
	return h, l
end

-- with_leases returns a bucket's backlog plus that of what is leased.
function F.with_leases(leases, l, h, low, p, pl)
	for _, lease in ipairs(leases) do
		local of = F.limit_of(lease.charge, l[2])
		if of then h, low, p, pl = F.sum(h, low, p, pl, of[7], of[8], of[9], of[10], l[5], l[6]) end
	end
	return h, low, p, pl
end

-- fits reports whether a bucket has room for a backlog and for what is leased.
function F.fits(leases, l, h, low, p, pl)
	h, low, p, pl = F.with_leases(leases, l, h, low, p, pl)
	return not F.longer(h, low, p, pl, l[11], l[12], l[13], l[14])
end

-- outlast makes an account that will be written live at least until everything that may still be
-- taken from its leases would have stopped counting.
function F.outlast(a)
	for _, lease in ipairs(a[LEASES]) do
		for k = 7, #lease.charge do
			local l = lease.charge[k]
			local h, low
			if l[1] == BUCKET then
				local ah, al, bh, bl = 0, 0, 0, 0
				for _, c in ipairs(a[COUNTERS]) do
					if c[LIMIT] == l[2] then ah, al, bh, bl = c[A], c[A + 1], c[B], c[B + 1] end
				end
				h, low = F.with_leases(a[LEASES], l, ah, al, bh, bl)
				h, low = F.plus(h, low, 0, 1)
			elseif l[1] == CALENDAR then -- the window of the request and the next one, which are longer than any one window
				h, low = F.minus(l[13], l[14], l[9], l[10])
			else
				local ph, pl = l[#l - 2], l[#l - 1] -- the period is the last number
				h, low = F.plus(ph, pl, ph, pl)
			end
			if l[1] == LOGGING and a[LOG] then h, low = F.plus(h, low, F.longest(a[LOG])) end
			F.in_use_until(a, F.plus(lease[2], lease[3], h, low))
		end
	end
end

-- lease adds a lease to an account. It returns false if there are too many.
function F.lease(a, op)
	if a[LEASES] and #a[LEASES] >= MOST_LEASES then return false end
	if not a[LIVE] then give_epoch(a) end
	local endh, endl = F.plus(F.h, F.l, op.termh, op.terml)
	a[LEASES] = a[LEASES] or {}
	table.insert(a[LEASES], {op.lease, endh, endl, op.request, charge = op[3]})
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, F.h, F.l, a[REVISION] + 1
	return true
end

-- end_lease removes a lease. It returns false if there is none with the name, because it was charged
-- before, or the key was reset.
function F.end_lease(a, name)
	for i, lease in ipairs(a[LEASES] or {}) do
		if lease[1] == name then
			table.remove(a[LEASES], i)
			if #a[LEASES] == 0 then a[LEASES] = nil end
			a[DIRTY], a[REVISION] = true, a[REVISION] + 1
			return true
		end
	end
	return false
end
