-- Numbers and backlogs.

const MAX_HI 4611686018     -- 2^62, the maximum of counts
const MAX_LO 427387904
const WRAP_HI 18446744073   -- 2^64, the modulus of refunds
const WRAP_LO 709551616

local function plus(ah, al, bh, bl)
	local lo = al + bl
	if lo >= BILLION then return ah + bh + 1, lo - BILLION end
	return ah + bh, lo
end

local function minus(ah, al, bh, bl)
	local lo = al - bl
	if lo < 0 then return ah - bh - 1, lo + BILLION end
	return ah - bh, lo
end

local function less(ah, al, bh, bl) return ah < bh or ah == bh and al < bl end

-- correct adds to a used amount. The result is from zero to 2^62.
local function correct(usedh, usedl, h, l)
	local sumh, suml = usedh + h, usedl + l
	if suml >= BILLION then sumh, suml = sumh + 1, suml - BILLION end
	if sumh < 0 then return 0, 0 end
	if sumh >= MAX_HI and less(MAX_HI, MAX_LO, sumh, suml) then return MAX_HI, MAX_LO end
	return sumh, suml
end

-- digits returns the three digits of a number in base 1e7, the lowest first.
local function digits(h, l)
	local low = h % 100000 * BILLION + l
	local high = math.floor(low / 10000000)
	return low % 10000000, high % 10000000, math.floor(high / 10000000) + math.floor(h / 100000)
end

-- product returns the digits of a product.
local function product(ah, al, bh, bl)
	local a1, a2, a3 = digits(ah, al)
	local b1, b2, b3 = digits(bh, bl)
	local out = {a1 * b1, a1 * b2 + a2 * b1, a1 * b3 + a2 * b2 + a3 * b1, a2 * b3 + a3 * b2, a3 * b3, 0}
	for i = 1, 5 do
		local carry = math.floor(out[i] / 10000000)
		out[i], out[i + 1] = out[i] % 10000000, out[i + 1] + carry
	end
	return out
end

-- within reports whether a * b <= c * d.
local function within(ah, al, bh, bl, ch, cl, dh, dl)
	local left, right = product(ah, al, bh, bl), product(ch, cl, dh, dl)
	for i = 6, 1, -1 do
		if left[i] ~= right[i] then return left[i] < right[i] end
	end
	return true
end

-- A backlog is two numbers: nanoseconds, and 1/count parts of one more.

local function longer(an, anl, ap, apl, bn, bnl, bp, bpl)
	if an ~= bn then return an > bn end
	if anl ~= bnl then return anl > bnl end
	return less(bp, bpl, ap, apl)
end

local function sum(an, anl, ap, apl, bn, bnl, bp, bpl, counth, countl)
	local h, l = plus(an, anl, bn, bnl)
	local ph, pl = plus(ap, apl, bp, bpl)
	if less(ph, pl, counth, countl) then return h, l, ph, pl end
	ph, pl = minus(ph, pl, counth, countl)
	h, l = plus(h, l, 0, 1)
	return h, l, ph, pl
end

-- difference returns a - b, or zero where b is larger.
local function difference(an, anl, ap, apl, bn, bnl, bp, bpl, counth, countl)
	if not longer(an, anl, ap, apl, bn, bnl, bp, bpl) then return 0, 0, 0, 0 end
	local h, l = minus(an, anl, bn, bnl)
	local ph, pl = minus(ap, apl, bp, bpl)
	if ph < 0 then
		ph, pl = plus(ph, pl, counth, countl)
		h, l = minus(h, l, 0, 1)
	end
	return h, l, ph, pl
end

-- left_at returns what is left of a bucket's backlog at a time after its last change.
local function left_at(c, h, l)
	local dh, dl = minus(h, l, c[AT], c[AT + 1])
	if less(c[A], c[A + 1], dh, dl) then return 0, 0, 0, 0 end
	local ah, al = minus(c[A], c[A + 1], dh, dl)
	return ah, al, c[B], c[B + 1]
end

-- ahead reports whether a time is in the future.
local function ahead(h, l) return nowh < h or nowh == h and nowl < l end

local function in_use_until(a, h, l)
	local fullh = a[FULL]
	if fullh < h or fullh == h and a[FULL + 1] < l then a[FULL], a[FULL + 1] = h, l end
end
