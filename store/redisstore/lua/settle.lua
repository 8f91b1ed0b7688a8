-- Settling. s is a settlement: the index of its key, the index of its log's key or 0, the epoch
-- of the take, n, the time of the take, the actual amount, the revision of the account after
-- the take if the take is to be undone, the number of limits, and the limits from index 13 on.
-- s.more says whether the actual amount is more than n, and s.same whether the account is still
-- the one that was taken from.

function F.counter(a, l)
	for _, c in ipairs(a[COUNTERS]) do
		if c[LIMIT] == l[2] then return c end
	end
	local c = {l[2], l[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	table.insert(a[COUNTERS], c)
	return c
end

F.fix = {}

F.fix[BUCKET] = function(a, s, l)
	local c, kh, kl = F.counter(a, l), l[4], l[5]
	local dh, dl, dp, dpl = l[6], l[7], l[8], l[9]
	local hh, hl, hp, hpl = l[10], l[11], l[12], l[13] -- the backlog that the take left, less what was refunded since
	if s.same and c[CHANGES] ~= l[18] then
		hh, hl, hp, hpl = 0, 0, 0, 0
	elseif s.same then
		local th, tl = F.minus(c[REFUNDED], c[REFUNDED + 1], l[14], l[15])
		local tp, tpl = F.minus(c[REFUNDED_PARTS], c[REFUNDED_PARTS + 1], l[16], l[17])
		if tp < 0 then
			tp, tpl = F.plus(tp, tpl, kh, kl)
			th, tl = F.minus(th, tl, 0, 1)
		end
		if th < 0 then th, tl = F.plus(th, tl, WRAP_HI, WRAP_LO) end
		hh, hl, hp, hpl = F.difference(hh, hl, hp, hpl, th, tl, tp, tpl, kh, kl)
	end
	if s.more then
		if F.less(c[AT], c[AT + 1], s[6], s[7]) then
			local lh, ll, lp, lpl = F.left_at(c, s[6], s[7])
			if F.longer(hh, hl, hp, hpl, lh, ll, lp, lpl) then lh, ll, lp, lpl = hh, hl, hp, hpl end
			c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = s[6], s[7], lh, ll, lp, lpl
		end
		c[A], c[A + 1], c[B], c[B + 1] = F.sum(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
		if F.less(MAX_HI, MAX_LO, c[A], c[A + 1]) then c[A], c[A + 1] = MAX_HI, MAX_LO end
	else -- refunds at most what still counts of the take
		local sinceh, sincel = F.minus(F.h, F.l, s[6], s[7])
		hh, hl, hp, hpl = F.difference(hh, hl, hp, hpl, sinceh, sincel, 0, 0, kh, kl)
		if F.longer(dh, dl, dp, dpl, hh, hl, hp, hpl) then dh, dl, dp, dpl = hh, hl, hp, hpl end
		local lh, ll, lp, lpl = F.left_at(c, F.h, F.l)
		if F.longer(dh, dl, dp, dpl, lh, ll, lp, lpl) then dh, dl, dp, dpl = lh, ll, lp, lpl end
		c[A], c[A + 1], c[B], c[B + 1] = F.difference(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
		c[9], c[10], c[11], c[12] = F.sum(c[9], c[10], c[11], c[12], dh, dl, dp, dpl, kh, kl)
		if not F.less(c[9], c[10], WRAP_HI, WRAP_LO) then c[9], c[10] = F.minus(c[9], c[10], WRAP_HI, WRAP_LO) end
	end
	local lh, ll, lp, lpl = F.left_at(c, F.h, F.l)
	if lp > 0 or lpl > 0 then lh, ll = F.plus(lh, ll, 0, 1) end
	F.in_use_until(a, F.plus(F.h, F.l, lh, ll))
end

F.fix[ALIGNED] = function(a, s, l)
	local c, anchored, nothing = F.counter(a, l), l[1] == ANCHORED, s[4] == 0 and s[5] == 0
	if s.more and not F.less(s[6], s[7], c[A], c[A + 1]) and (nothing or not anchored) then -- the window was forgotten, or nothing was taken
		c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = l[4], l[5], l[6], l[7], 0, 0
	end
	local bh, bl = c[AT], c[AT + 1]
	if anchored and nothing then -- the window began later, since nothing was taken
		bh, bl = F.minus(bh, bl, l[8], l[9])
		bh, bl = F.plus(bh, bl, 0, 1)
	end
	if not F.less(s[6], s[7], bh, bl) and F.less(s[6], s[7], c[A], c[A + 1]) then
		c[B], c[B + 1] = F.correct(c[B], c[B + 1], F.minus(s[8], s[9], s[4], s[5]))
	end
	if c[B] > 0 or c[B + 1] > 0 then
		if F.ahead(c[A], c[A + 1]) then F.in_use_until(a, c[A], c[A + 1]) end
	else -- a take that is given back has begun no window
		c[AT], c[AT + 1], c[A], c[A + 1] = 0, 0, 0, 0
	end
end
F.fix[ANCHORED], F.fix[CALENDAR] = F.fix[ALIGNED], F.fix[ALIGNED]

F.fix[SLIDING] = function(a, s, l)
	local c, sh, sl, ph, pl = F.counter(a, l), l[4], l[5], l[6], l[7]
	if F.less(c[AT], c[AT + 1], sh, sl) then
		c[A], c[A + 1], c[B], c[B + 1] = F.slid(c, sh, sl, ph, pl)
		c[AT], c[AT + 1] = sh, sl
	end
	local dh, dl = F.minus(s[8], s[9], s[4], s[5])
	local beforeh, beforel = F.minus(c[AT], c[AT + 1], ph, pl)
	if sh == c[AT] and sl == c[AT + 1] then
		c[B], c[B + 1] = F.correct(c[B], c[B + 1], dh, dl)
	elseif sh == beforeh and sl == beforel then
		c[A], c[A + 1] = F.correct(c[A], c[A + 1], dh, dl)
	end
	local currenth, currentl = F.start(F.h, F.l, sh, sl, ph, pl)
	local oldh, oldl, newh, newl = F.slid(c, currenth, currentl, ph, pl)
	local eh, el = F.plus(currenth, currentl, ph, pl)
	if newh > 0 or newl > 0 then
		F.in_use_until(a, F.plus(eh, el, ph, pl))
	elseif oldh > 0 or oldl > 0 then
		F.in_use_until(a, eh, el)
	end
end

-- search returns the first entry after a time. It begins at the newest ones, because most takes
-- are settled soon.
function F.search(a, h, l)
	local oldest, high, step = a[LOG][OLDEST], a[LOG][NEXT], 1
	local low = high
	while low > oldest do
		local e = F.entry(a, low - 1)
		if not F.less(h, l, e[1], e[2]) then break end
		high = low - 1
		low, step = math.max(oldest, low - step), 2 * step
	end
	while low < high do
		local middle = low + math.floor((high - low) / 2)
		local e = F.entry(a, middle)
		if F.less(h, l, e[1], e[2]) then high = middle else low = middle + 1 end
	end
	return low
end

-- fix_log corrects the entry of a take, in all windows that it is in.
function F.fix_log(a, s)
	local log = a[LOG]
	local fromh, froml = F.minus(F.h, F.l, F.longest(log))
	if not F.less(fromh, froml, s[6], s[7]) then return end
	if not s.more and not F.less(log[DROPPED], log[DROPPED + 1], s[6], s[7]) then return end
	local dh, dl = F.minus(s[8], s[9], s[4], s[5])
	local i = F.search(a, s[6], s[7])
	local before = i > log[OLDEST] and F.entry(a, i - 1)
	if before and before[1] == s[6] and before[2] == s[7] then i = i - 1 end -- of several entries at this time, a rewind has moved all but the last
	if i == log[NEXT] then
		if s.more then F.add(a, s[6], s[7], dh, dl) end
		F.log_in_use(a)
		return
	end
	local e = F.entry(a, i)
	local h, l = F.correct(e[3], e[4], dh, dl)
	F.put(log, i, e[1], e[2], h, l)
	for _, w in ipairs(log.windows) do
		if w[FIRST] <= i and s.more then
			w[SUM], w[SUM + 1] = F.correct(w[SUM], w[SUM + 1], F.minus(h, l, e[3], e[4]))
		elseif w[FIRST] <= i then
			F.lower(a, w, F.minus(e[3], e[4], h, l))
		end
	end
	while log[NEXT] > log[OLDEST] do -- the newest entry determines when the log is empty
		e = F.entry(a, log[NEXT] - 1)
		if e[3] > 0 or e[4] > 0 then
			log[NEWEST], log[NEWEST + 1] = e[1], e[2]
			break
		end
		log[NEXT] = log[NEXT] - 1
	end
	for _, w in ipairs(log.windows) do w[FIRST] = math.min(w[FIRST], log[NEXT]) end
	F.log_in_use(a)
end

local SETTLES = {
	'<BBc0Bc0dI4dI4dI4dI4dI4dI4dI4d', -- count, difference, its parts, backlog left, its parts, refunded, its parts, changes
	'<BBc0Bc0dI4dI4dI4',              -- start and end of the window of its time, period
	'<BBc0Bc0dI4dI4dI4',
	'<BBc0Bc0dI4dI4dI4',
	'<BBc0Bc0dI4dI4',                 -- start of the window of its time, period
	'<BBc0Bc0dI4',                    -- period
}

-- check_settlement sets F.trouble unless a settlement can be done here.
function F.check_settlement(a, s)
	if not a[LIVE] then return end
	local same_birth = string.sub(s[3], 1, 6) == string.sub(a[EPOCH], 1, 6)
	if F.ahead(a[SEEN], a[SEEN + 1]) or F.ahead(s[6], s[7]) or same_birth and s[3] ~= a[EPOCH] then F.trouble = UNREADY end
	for k = 13, #s do
		local l = s[k]
		if l[1] == LOGGING then
			F.log_ready(a, l[4], l[5], F.less(s[4], s[5], s[8], s[9]))
		else
			local found = false
			for _, c in ipairs(a[COUNTERS]) do
				if c[LIMIT] == l[2] then
					found = true
					if F.ahead(c[AT], c[AT + 1]) then F.trouble = UNREADY end
				end
			end
			if not found and F.inherits(a[COUNTERS], s, 13, l[3]) then F.trouble = UNREADY end
		end
		if l[1] == SLIDING then F.start(F.h, F.l, l[4], l[5], l[6], l[7]) end
	end
end

-- settle corrects takes to the actual amounts.
function F.settle(body, base)
	local all, at = {}, 3
	for i = 1, byte(body, 2) do
		local s = {unpack_from('<BBc8dI4dI4dI4dB', body, at)}
		local limits = s[11]
		at = s[12]
		for k = 13, 12 + limits do
			local l = {unpack_from(SETTLES[byte(body, at)], body, at)}
			s[k], at = l, l[#l]
			if s[10] >= 0 then -- the state before the take
				l.before = {unpack_from('<dI4dI4dI4', body, at)}
				at = l.before[7]
			end
		end
		F.check_settlement(find(KEYS[base + s[1]], s[2] > 0 and KEYS[base + s[2]]), s)
		all[i] = s
	end
	if F.trouble then return F.trouble end
	for _, s in ipairs(all) do F.settle_one(touched[KEYS[base + s[1]]], s) end
	return ALLOWED
end

function F.settle_one(a, s)
	s.more, s.same = F.less(s[4], s[5], s[8], s[9]), a[LIVE] and s[3] == a[EPOCH]
	if not s.more and not s.same and (s[3] ~= NO_EPOCH or not a[LIVE]) then return end -- the account of the take was forgotten
	if not a[LIVE] then give_epoch(a) end
	local logged = false
	for k = 13, #s do
		local l = s[k]
		if l[1] == LOGGING then
			F.ensure_window(a, l[4], l[5])
			logged = true
		elseif s[10] == a[REVISION] then -- nothing has changed since: restore the state
			local c = F.counter(a, l)
			c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = l.before[1], l.before[2], l.before[3], l.before[4], l.before[5], l.before[6]
		else
			F.fix[l[1]](a, s, l)
		end
	end
	if logged then F.fix_log(a, s) end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, F.h, F.l, a[REVISION] + 1
end
