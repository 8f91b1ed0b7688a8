-- inherits reports whether a limit that has no counter may take over the counter of another limit
-- of the same shape: one that is not among limits, which begin at index first. It also reports
-- true if there are too many counters.
function F.inherits(counters, limits, first, shape)
	for i = 1, #counters do
		local c, asked = counters[i], false
		if c[SHAPE] == shape then
			for k = first, #limits do asked = asked or limits[k][2] == c[LIMIT] end
			if not asked then return true end
		end
	end
	return #counters + #limits - first >= MOST_COUNTERS
end

-- ask has a function for each kind of limit. The function returns whether n may pass, the state
-- of the counter after that, and until when that is in use. It adds the counter to the answer,
-- so that package limit can make the same decision.
F.ask = {}

function F.report(c, answer, filled)
	if c and F.ahead(c[AT], c[AT + 1]) then F.trouble = UNREADY end
	for i = 1, 6 do answer[filled + i] = c and c[AT - 1 + i] or 0 end
end

-- fixed is ask for a fixed window: the one that the counter is in, or else a new one from start to
-- end.
function F.fixed(c, l, charge, starth, startl, endh, endl)
	local usedh, usedl = charge[3], charge[4]
	if c and F.ahead(c[A], c[A + 1]) then
		starth, startl, endh, endl = c[AT], c[AT + 1], c[A], c[A + 1]
		usedh, usedl = F.plus(c[B], c[B + 1], usedh, usedl)
	end
	local allows = not F.less(l[5], l[6], usedh, usedl)
	return allows, starth, startl, endh, endl, usedh, usedl, endh, endl
end

F.ask[ALIGNED] = function(a, c, l, charge, answer, filled)
	F.report(c, answer, filled)
	local h, low = F.start(F.h, F.l, l[7], l[8], l[9], l[10])
	return F.fixed(c, l, charge, h, low, F.plus(h, low, l[9], l[10]))
end

F.ask[ANCHORED] = function(a, c, l, charge, answer, filled)
	F.report(c, answer, filled)
	return F.fixed(c, l, charge, F.h, F.l, F.plus(F.h, F.l, l[7], l[8]))
end

F.ask[CALENDAR] = function(a, c, l, charge, answer, filled)
	F.report(c, answer, filled)
	for i = 7, 11, 2 do
		if not F.ahead(l[i], l[i + 1]) and F.ahead(l[i + 2], l[i + 3]) then
			return F.fixed(c, l, charge, l[i], l[i + 1], l[i + 2], l[i + 3])
		end
	end
	F.trouble = SKEWED
end

F.ask[SLIDING] = function(a, c, l, charge, answer, filled)
	F.report(c, answer, filled)
	local ph, pl = l[9], l[10]
	local sh, sl = F.start(F.h, F.l, l[7], l[8], ph, pl)
	local eh, el = F.plus(sh, sl, ph, pl)
	local oldh, oldl, usedh, usedl = 0, 0, 0, 0
	if c then oldh, oldl, usedh, usedl = F.slid(c, sh, sl, ph, pl) end
	usedh, usedl = F.plus(usedh, usedl, charge[3], charge[4])
	local roomh, rooml = F.minus(l[5], l[6], usedh, usedl)
	local allows = roomh >= 0
	if allows and (oldh > 0 or oldl > 0) then
		local lefth, leftl = F.minus(eh, el, F.h, F.l)
		roomh, rooml = F.plus(roomh, rooml, 0, 1)
		allows = not F.within(roomh, rooml, ph, pl, oldh, oldl, lefth, leftl)
	end
	return allows, sh, sl, oldh, oldl, usedh, usedl, F.plus(eh, el, ph, pl)
end

-- For a log, the answer has the sum of the window, the time of the newest entry, and the time of
-- the entry that must leave the window before what is denied can pass.
F.ask[LOGGING] = function(a, c, l, charge, answer, filled)
	for i = 1, 6 do answer[filled + i] = 0 end
	F.log_ready(a, l[7], l[8], charge[5])
	local log = a[LOG]
	local w = log and F.window(log, l[7], l[8])
	if F.trouble then return end
	if not w then return not F.less(l[5], l[6], charge[3], charge[4]) end
	F.slide(a, w)
	answer[filled + 1], answer[filled + 2], answer[filled + 3], answer[filled + 4] = w[SUM], w[SUM + 1], log[NEWEST], log[NEWEST + 1]
	if l[4] == 1 then return false end
	local usedh, usedl = F.plus(w[SUM], w[SUM + 1], charge[3], charge[4])
	local overh, overl = F.minus(usedh, usedl, l[5], l[6])
	if overh < 0 or overh == 0 and overl == 0 then return true end
	local i = w[FIRST]
	while i < log[NEXT] and (overh > 0 or overh == 0 and overl > 0) do
		local e = F.entry(a, i)
		overh, overl = F.minus(overh, overl, e[3], e[4])
		answer[filled + 5], answer[filled + 6], i = e[1], e[2], i + 1
	end
	return false
end
