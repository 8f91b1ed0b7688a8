-- Windows.

-- start returns the start of the window that contains a time. ref is the start of a window
-- nearby.
local function window_start(h, l, refh, refl, ph, pl)
	local dh, dl = minus(h, l, refh, refl)
	if dh >= 0 and less(dh, dl, ph, pl) then return refh, refl end
	if ph >= 4000000 or dh < -4000000 or dh >= 4000000 then -- 2^52 ns
		trouble = SKEWED
		return h, l
	end
	local past = math.fmod(dh * BILLION + dl, ph * BILLION + pl)
	if past < 0 then past = past + ph * BILLION + pl end
	return minus(h, l, math.floor(past / BILLION), past % BILLION)
end

-- slid returns a sliding counter as of the window that begins at a time: what was used in
-- the window before, and in this one.
local function slid(c, starth, startl, ph, pl)
	if c[AT] == starth and c[AT + 1] == startl then return c[A], c[A + 1], c[B], c[B + 1] end
	local nexth, nextl = plus(c[AT], c[AT + 1], ph, pl)
	if nexth == starth and nextl == startl then return c[B], c[B + 1], 0, 0 end
	return 0, 0, 0, 0
end
