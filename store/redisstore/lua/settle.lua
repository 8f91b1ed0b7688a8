-- Settling. s is a settlement: the index of its key, the epoch of the take, n, the time of the take, the actual amount,
-- the revision of the account after the take if the take is to be undone, and the limits. s.more says whether the actual
-- amount is more than n, s.same whether the account is still the one that was taken from, and s.before has the counters
-- before a take that is to be undone.

local fix = {}

fix[BUCKET] = function(a, s, l)
	local c, kh, kl = counter(a, l), l[4], l[5]
	local dh, dl, dp, dpl = l[6], l[7], l[8], l[9]
	local hh, hl, hp, hpl = l[10], l[11], l[12], l[13] -- the backlog that the take left, less what was refunded since
	if s.same and c[CHANGES] ~= l[18] then
		hh, hl, hp, hpl = 0, 0, 0, 0
	elseif s.same then
		local th, tl = minus(c[REFUNDED], c[REFUNDED + 1], l[14], l[15])
		local tp, tpl = minus(c[REFUNDED_PARTS], c[REFUNDED_PARTS + 1], l[16], l[17])
		if tp < 0 then
			tp, tpl = plus(tp, tpl, kh, kl)
			th, tl = minus(th, tl, 0, 1)
		end
		if th < 0 then th, tl = plus(th, tl, WRAP_HI, WRAP_LO) end
		hh, hl, hp, hpl = difference(hh, hl, hp, hpl, th, tl, tp, tpl, kh, kl)
	end
	if s.more then
		if less(c[AT], c[AT + 1], s[5], s[6]) then
			local lh, ll, lp, lpl = left_at(c, s[5], s[6])
			if longer(hh, hl, hp, hpl, lh, ll, lp, lpl) then lh, ll, lp, lpl = hh, hl, hp, hpl end
			c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = s[5], s[6], lh, ll, lp, lpl
		end
		c[A], c[A + 1], c[B], c[B + 1] = sum(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
		if less(MAX_HI, MAX_LO, c[A], c[A + 1]) then c[A], c[A + 1] = MAX_HI, MAX_LO end
	else -- refunds at most what still counts of the take
		local sinceh, sincel = minus(nowh, nowl, s[5], s[6])
		hh, hl, hp, hpl = difference(hh, hl, hp, hpl, sinceh, sincel, 0, 0, kh, kl)
		if longer(dh, dl, dp, dpl, hh, hl, hp, hpl) then dh, dl, dp, dpl = hh, hl, hp, hpl end
		local lh, ll, lp, lpl = left_at(c, nowh, nowl)
		if longer(dh, dl, dp, dpl, lh, ll, lp, lpl) then dh, dl, dp, dpl = lh, ll, lp, lpl end
		c[A], c[A + 1], c[B], c[B + 1] = difference(c[A], c[A + 1], c[B], c[B + 1], dh, dl, dp, dpl, kh, kl)
		c[9], c[10], c[11], c[12] = sum(c[9], c[10], c[11], c[12], dh, dl, dp, dpl, kh, kl)
		if not less(c[9], c[10], WRAP_HI, WRAP_LO) then c[9], c[10] = minus(c[9], c[10], WRAP_HI, WRAP_LO) end
	end
	local lh, ll, lp, lpl = left_at(c, nowh, nowl)
	if lp > 0 or lpl > 0 then lh, ll = plus(lh, ll, 0, 1) end
	in_use_until(a, plus(nowh, nowl, lh, ll))
end

fix[ALIGNED] = function(a, s, l)
	local c, anchored, nothing = counter(a, l), l[1] == ANCHORED, s[3] == 0 and s[4] == 0
	if s.more and not less(s[5], s[6], c[A], c[A + 1]) and (nothing or not anchored) then -- the window was forgotten, or nothing was taken
		c[B], c[B + 1] = 0, 0
		if anchored then
			c[AT], c[AT + 1], c[A], c[A + 1] = s[5], s[6], plus(s[5], s[6], l[4], l[5])
		else
			c[AT], c[AT + 1], c[A], c[A + 1] = l[4], l[5], l[6], l[7]
		end
	end
	local bh, bl = c[AT], c[AT + 1]
	if anchored and nothing then -- the window began later, since nothing was taken
		bh, bl = minus(bh, bl, l[4], l[5])
		bh, bl = plus(bh, bl, 0, 1)
	end
	if not less(s[5], s[6], bh, bl) and less(s[5], s[6], c[A], c[A + 1]) then
		c[B], c[B + 1] = correct(c[B], c[B + 1], minus(s[7], s[8], s[3], s[4]))
	end
	if c[B] > 0 or c[B + 1] > 0 then
		if ahead(c[A], c[A + 1]) then in_use_until(a, c[A], c[A + 1]) end
	else -- a take that is given back has begun no window
		c[AT], c[AT + 1], c[A], c[A + 1] = 0, 0, 0, 0
	end
end
fix[ANCHORED], fix[CALENDAR] = fix[ALIGNED], fix[ALIGNED]

fix[SLIDING] = function(a, s, l)
	local c, sh, sl, ph, pl = counter(a, l), l[4], l[5], l[6], l[7]
	if less(c[AT], c[AT + 1], sh, sl) then
		c[A], c[A + 1], c[B], c[B + 1] = slid(c, sh, sl, ph, pl)
		c[AT], c[AT + 1] = sh, sl
	end
	local dh, dl = minus(s[7], s[8], s[3], s[4])
	local beforeh, beforel = minus(c[AT], c[AT + 1], ph, pl)
	if sh == c[AT] and sl == c[AT + 1] then
		c[B], c[B + 1] = correct(c[B], c[B + 1], dh, dl)
	elseif sh == beforeh and sl == beforel then
		c[A], c[A + 1] = correct(c[A], c[A + 1], dh, dl)
	end
	local currenth, currentl = window_start(nowh, nowl, sh, sl, ph, pl)
	local oldh, oldl, newh, newl = slid(c, currenth, currentl, ph, pl)
	local eh, el = plus(currenth, currentl, ph, pl)
	if newh > 0 or newl > 0 then
		in_use_until(a, plus(eh, el, ph, pl))
	elseif oldh > 0 or oldl > 0 then
		in_use_until(a, eh, el)
	end
end

-- search returns the first entry after a time. It begins at the newest ones, because most takes
-- are settled soon.
local function search(a, h, l)
	local oldest, high, step = a[LOG][OLDEST], a[LOG][NEXT], 1
	local low = high
	while low > oldest do
		local e = entry(a, low - 1)
		if not less(h, l, e[1], e[2]) then break end
		high = low - 1
		low, step = math.max(oldest, low - step), 2 * step
	end
	while low < high do
		local middle = low + math.floor((high - low) / 2)
		local e = entry(a, middle)
		if less(h, l, e[1], e[2]) then high = middle else low = middle + 1 end
	end
	return low
end

-- entry_of returns the index of the entry of a take, or of the first one after it, and that entry. Of several entries at
-- one time, a rewind has moved all but the last.
local function entry_of(a, h, l)
	local log = a[LOG]
	local i = log[NEXT] - 1
	local e = i >= log[OLDEST] and entry(a, i)
	if e and e[1] == h and e[2] == l then return i, e end
	i = search(a, h, l)
	e = i > log[OLDEST] and entry(a, i - 1)
	if e and e[1] == h and e[2] == l then return i - 1, e end
	return i, i < log[NEXT] and entry(a, i)
end

-- trim removes newest entries that are zero: the newest one determines when the log is empty.
local function trim(a, log)
	while log[NEXT] > log[OLDEST] do
		local e = entry(a, log[NEXT] - 1)
		if e[3] > 0 or e[4] > 0 then
			log[NEWEST], log[NEWEST + 1] = e[1], e[2]
			break
		end
		log[NEXT] = log[NEXT] - 1
	end
	for _, w in ipairs(log.windows) do w[FIRST] = math.min(w[FIRST], log[NEXT]) end
end

-- fix_log corrects the entry of a take, in all windows that it is in.
local function fix_log(a, s)
	local log, ath, atl = a[LOG], s[5], s[6]
	if not log.longesth then find_longest(log) end
	if not less(nowh, nowl, plus(ath, atl, log.longesth, log.longestl)) then return end
	if not s.more and not less(log[DROPPED], log[DROPPED + 1], ath, atl) then return end
	local dh, dl = minus(s[7], s[8], s[3], s[4])
	local i, e = entry_of(a, ath, atl)
	if e then
		local oldh, oldl = e[3], e[4]
		local h, l = correct(oldh, oldl, dh, dl)
		e[3], e[4], log.changed[i % log[SIZE]] = h, l, true
		change_sums(a, log, i, minus(h, l, oldh, oldl))
		if h == 0 and l == 0 then trim(a, log) end
	elseif s.more then
		add(a, ath, atl, dh, dl)
	end
	log_in_use(a)
end

local SETTLES = {
	'<BBc0Bc0dI4dI4dI4dI4dI4dI4dI4d', -- count, difference, its parts, backlog left, its parts, refunded, its parts, changes
	'<BBc0Bc0dI4dI4',                 -- start and end of the window of its time
	'<BBc0Bc0dI4',                    -- period
	'<BBc0Bc0dI4dI4',                 -- start and end of the window of its time
	'<BBc0Bc0dI4dI4',                 -- start of the window of its time, period
	'<BBc0Bc0dI4',                    -- period
	limits = {}, how_many = 0,
}

-- check_settlement sets trouble unless a settlement can be done here.
local function check_settlement(a, s)
	if not a[LIVE] then return end
	local limits, counters, log = s[LIMITS], a[COUNTERS], a[LOG]
	if ahead(a[SEEN], a[SEEN + 1]) or ahead(s[5], s[6]) or s[2] ~= a[EPOCH] and string.sub(s[2], 1, 6) == string.sub(a[EPOCH], 1, 6) then
		trouble = UNREADY
	end
	if limits.logged and log then
		log_ready(a, s.more)
		if log.settled == limits then return end
	end
	for k = 1, #limits do
		local l = limits[k]
		local c = counters[l[2]]
		if l[1] == LOGGING then
			if log then window_ready(log, l[2], l[4], l[5]) end
		elseif c and ahead(c[AT], c[AT + 1]) or not c and inherits(counters, limits, l[3]) then
			trouble = UNREADY
		end
		if l[1] == SLIDING then window_start(nowh, nowl, l[4], l[5], l[6], l[7]) end
	end
end

local function settle_one(a, s)
	s.same = a[LIVE] and s[2] == a[EPOCH]
	if not s.more and not s.same and (s[2] ~= NO_EPOCH or not a[LIVE]) then return end -- the account of the take was forgotten
	if not a[LIVE] then give_epoch(a) end
	local limits, log = s[LIMITS], a[LOG]
	for k = 1, log and log.settled == limits and 0 or #limits do
		local l = limits[k]
		if l[1] == LOGGING then
			ensure_window(a, l[2], l[4], l[5])
		elseif s[9] == a[REVISION] then -- nothing has changed since: restore the state
			local c, before = counter(a, l), s.before[k]
			c[AT], c[AT + 1], c[A], c[A + 1], c[B], c[B + 1] = before[1], before[2], before[3], before[4], before[5], before[6]
		else
			fix[l[1]](a, s, l)
		end
	end
	if limits.logged then
		if not limits.counted then a[LOG].settled = limits end
		fix_log(a, s)
	end
	a[DIRTY], a[SEEN], a[SEEN + 1], a[REVISION] = true, nowh, nowl, a[REVISION] + 1
end

const SETTLEMENT '<Bc8dI4dI4dI4dI4c0'
const LIMITS 10
const SETTLEMENT_END 11

-- settle corrects takes to the actual amounts.
local function settle(body, base, at)
	local all, count = {}, byte(body, at + 1)
	at = at + 2
	for i = 1, count do
		local s = {more = false, same = false, unpack_from(SETTLEMENT, body, at)}
		local limits = SETTLES.limits[s[LIMITS]] or read_limits(SETTLES, s[LIMITS])
		s[LIMITS], s.more, at = limits, less(s[3], s[4], s[7], s[8]), s[SETTLEMENT_END]
		if s[9] >= 0 then
			s.before = {}
			for k = 1, #limits do
				s.before[k] = {unpack_from('<dI4dI4dI4', body, at)}
				at = s.before[k][7]
			end
		end
		check_settlement(find(KEYS[base + s[1]]), s)
		all[i] = s
	end
	if trouble then return trouble end
	for i = 1, #all do settle_one(touched[KEYS[base + all[i][1]]], all[i]) end
	return ALLOWED
end
