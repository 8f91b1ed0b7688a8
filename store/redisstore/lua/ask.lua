-- inherits reports whether a limit that has no counter may take over the counter of another limit
-- of the same shape: one that is not among limits. It also reports true if there are too many
-- counters.
local function inherits(counters, limits, shape)
	for i = 1, #counters do
		local c, asked = counters[i], false
		if c[SHAPE] == shape then
			for k = 1, #limits do asked = asked or limits[k][2] == c[LIMIT] end
			if not asked then return true end
		end
	end
	return #counters + #limits > MOST_COUNTERS
end

-- The answer: its status; for each charge an epoch, a revision, and the time of the newest entry if it asks a log; for
-- each limit its counter: six values, eleven for a bucket, with its refunds, or the two of the sum for a log. A denial
-- has for each log, after all that, when there is room in it. So package limit can make the same decisions.
local answer = {}

-- ask has a function for each kind of counter, which reports whether n may pass, and adds the counter to
-- the answer after index f. charge has one that charges a counter after all limits have let n pass.
local ask, charge = {}, {}

local function report(c, f)
	if not c then
		answer[f + 1], answer[f + 2], answer[f + 3], answer[f + 4], answer[f + 5], answer[f + 6] = 0, 0, 0, 0, 0, 0
		return
	end
	if nowh < c[AT] or nowh == c[AT] and nowl < c[AT + 1] then trouble = UNREADY end
	answer[f + 1], answer[f + 2], answer[f + 3], answer[f + 4], answer[f + 5], answer[f + 6] = c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1]
end

-- current returns the start and the end of a fixed window that is current now.
local function current(l)
	if l[1] == ANCHORED then return nowh, nowl, plus(nowh, nowl, l[7], l[8]) end
	if l[1] == ALIGNED then
		local h, low = window_start(nowh, nowl, l[7], l[8], l[9], l[10])
		return h, low, plus(h, low, l[9], l[10])
	end
	for i = 7, 11, 2 do
		if not ahead(l[i], l[i + 1]) and ahead(l[i + 2], l[i + 3]) then return l[i], l[i + 1], l[i + 2], l[i + 3] end
	end
	trouble = SKEWED
end

ask[ALIGNED] = function(a, c, l, nh, nl, f)
	report(c, f)
	if c and (nowh < c[A] or nowh == c[A] and nowl < c[A + 1]) then
		nh, nl = nh + c[B], nl + c[B + 1]
		if nl >= BILLION then nh, nl = nh + 1, nl - BILLION end
	elseif l[1] ~= ANCHORED then
		current(l) -- for its trouble
	end
	return nh < l[5] or nh == l[5] and nl <= l[6]
end
ask[ANCHORED], ask[CALENDAR] = ask[ALIGNED], ask[ALIGNED]

charge[ALIGNED] = function(a, c, l, nh, nl)
	if nowh < c[A] or nowh == c[A] and nowl < c[A + 1] then
		nh, nl = nh + c[B], nl + c[B + 1]
		if nl >= BILLION then nh, nl = nh + 1, nl - BILLION end
	else
		c[AT], c[AT + 1], c[A], c[A + 1] = current(l)
	end
	c[B], c[B + 1] = nh, nl
	in_use_until(a, c[A], c[A + 1])
end
charge[ANCHORED], charge[CALENDAR] = charge[ALIGNED], charge[ALIGNED]

-- slid_now returns a sliding counter as of now: when its window begins and ends, what was used in the window before, and
-- what is used in this one after n.
local function slid_now(c, l, nh, nl)
	local ph, pl = l[9], l[10]
	local sh, sl = window_start(nowh, nowl, l[7], l[8], ph, pl)
	local eh, el = plus(sh, sl, ph, pl)
	local oldh, oldl, usedh, usedl = 0, 0, 0, 0
	if c then oldh, oldl, usedh, usedl = slid(c, sh, sl, ph, pl) end
	return sh, sl, eh, el, oldh, oldl, plus(usedh, usedl, nh, nl)
end

ask[SLIDING] = function(a, c, l, nh, nl, f)
	report(c, f)
	local _, _, eh, el, oldh, oldl, usedh, usedl = slid_now(c, l, nh, nl)
	local roomh, rooml = minus(l[5], l[6], usedh, usedl)
	if roomh < 0 or oldh == 0 and oldl == 0 then return roomh >= 0 end
	local lefth, leftl = minus(eh, el, nowh, nowl)
	roomh, rooml = plus(roomh, rooml, 0, 1)
	return not within(roomh, rooml, l[9], l[10], oldh, oldl, lefth, leftl)
end

charge[SLIDING] = function(a, c, l, nh, nl)
	local sh, sl, eh, el, oldh, oldl, usedh, usedl = slid_now(c, l, nh, nl)
	c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = sh, sl, oldh, oldl, usedh, usedl
	in_use_until(a, plus(eh, el, l[9], l[10]))
end

-- ask_log is ask for a log. The answer has the sum of the window.
local function ask_log(a, l, nh, nl, f)
	local log, sumh, suml = a[LOG], 0, 0
	local w = log and (log.by[l[2]] or window_ready(log, l[2], l[7], l[8]))
	if w then
		if nowh >= w[LEAVES] then slide(a, w) end
		sumh, suml = w[SUM], w[SUM + 1]
	end
	answer[f + 1], answer[f + 2] = sumh, suml
	sumh, suml = sumh + nh, suml + nl
	if suml >= BILLION then sumh, suml = sumh + 1, suml - BILLION end
	return (sumh < l[5] or sumh == l[5] and suml <= l[6]) and l[4] == 0
end

-- room_at returns the time of the entry that must leave a log's window before n can pass, or zeros.
local function room_at(a, l, nh, nl)
	local log, ath, atl = a[LOG], 0, 0
	local w = log and log.by[l[2]]
	if not w or l[4] == 1 then return 0, 0 end
	local overh, overl = plus(w[SUM], w[SUM + 1], nh, nl)
	overh, overl = minus(overh, overl, l[5], l[6])
	local i = w[FIRST]
	while i < log[NEXT] and (overh > 0 or overh == 0 and overl > 0) do
		local e = entry(a, i)
		overh, overl = minus(overh, overl, e[3], e[4])
		ath, atl, i = e[1], e[2], i + 1
	end
	return ath, atl
end

-- pour adds the cost of a charge to the backlog of a bucket, whose counter is c, or nil if it has
-- none. It returns whether the bucket has room for the cost, the new backlog in ns and parts, and
-- when that will have drained. It returns nil if the clock went back.
local function pour(c, l)
	local ah, al, bh, bl = l[7], l[8], l[9], l[10] -- its cost
	if c then
		local sinceh, sincel = nowh - c[AT], nowl - c[AT + 1]
		if sincel < 0 then sinceh, sincel = sinceh - 1, sincel + BILLION end
		if sinceh < 0 then return nil end
		local lefth, leftl = c[A] - sinceh, c[A + 1] - sincel
		if leftl < 0 then lefth, leftl = lefth - 1, leftl + BILLION end
		if lefth >= 0 then
			ah, al, bh, bl = ah + lefth, al + leftl, bh + c[B], bl + c[B + 1]
			if bl >= BILLION then bh, bl = bh + 1, bl - BILLION end
			if bh > l[5] or bh == l[5] and bl >= l[6] then -- the parts make a whole nanosecond
				al, bh, bl = al + 1, bh - l[5], bl - l[6]
				if bl < 0 then bh, bl = bh - 1, bl + BILLION end
			end
			if al >= BILLION then ah, al = ah + 1, al - BILLION end
		end
	end
	local untilh, untill = nowh + ah, nowl + al
	if bh > 0 or bl > 0 then untill = untill + 1 end
	if untill >= BILLION then untilh, untill = untilh + 1, untill - BILLION end
	local fits = bh < l[13] or bh == l[13] and bl <= l[14]
	if ah ~= l[11] then
		fits = ah < l[11]
	elseif al ~= l[12] then
		fits = al < l[12]
	end
	return fits and l[4] == 0, ah, al, bh, bl, untilh, untill
end

ask[BUCKET] = function(a, c, l, nh, nl, f)
	local allows = pour(c, l)
	if allows == nil then trouble = UNREADY end
	report(c, f)
	if c then
		answer[f + 7], answer[f + 8], answer[f + 9], answer[f + 10], answer[f + 11] = c[9], c[10], c[11], c[12], c[CHANGES]
	else
		answer[f + 7], answer[f + 8], answer[f + 9], answer[f + 10], answer[f + 11] = 0, 0, 0, 0, 0
	end
	return allows
end

charge[BUCKET] = function(a, c, l)
	local _, ah, al, bh, bl, untilh, untill = pour(c, l)
	c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = nowh, nowl, ah, al, bh, bl
	in_use_until(a, untilh, untill)
end
