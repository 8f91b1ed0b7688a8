package dialect

import (
	"bytes"
	"math"
	"strconv"
)

// maxNumber bounds the numbers of a response: every one is below it, and exact as a float.
const maxNumber = 1 << 53

// maxExponent bounds the exponents of costs.
const maxExponent = 1000

// A numberForm is how a number is written.
type numberForm uint8

const (
	asWhole   numberForm = iota
	asDollars            // which become billionths
	asFlag               // true is 1, and false is 0
	asMark               // true is 1, and false is not reported
	asSeconds            // which become whole ones, rounded up
)

// parse parses a number, and reports whether it makes sense.
func (f numberForm) parse(b []byte) (int64, bool) {
	switch {
	case f == asWhole:
		return whole(b)
	case f == asDollars:
		return billionths(b)
	case f == asSeconds:
		n, ok := billionths(b)
		return (n + 999_999_999) / 1_000_000_000, ok
	case string(b) == "true":
		return 1, true
	}
	return 0, f == asFlag && string(b) == "false"
}

// whole parses a whole number from 0 to below 2^53.
func whole(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) >= maxWord { // a longer word may have been cut
		return 0, false
	}
	if n, err := strconv.ParseUint(string(b), 10, 53); err == nil { // nearly always
		return int64(n), true
	}
	f, err := strconv.ParseFloat(string(b), 64)
	return int64(f), err == nil && f >= 0 && f < maxNumber && f == math.Trunc(f)
}

// billionths parses a number that is not negative, exactly, and returns it in billionths, rounded up.
// The result is below 2^53, which is nine million.
func billionths(b []byte) (n int64, ok bool) {
	if len(b) >= maxWord { // a longer word may have been cut
		return 0, false
	}
	exponent := 0
	if i := bytes.IndexAny(b, "eE"); i >= 0 {
		e, err := strconv.Atoi(string(b[i+1:]))
		if err != nil || e < -maxExponent || e > maxExponent {
			return 0, false
		}
		b, exponent = b[:i], e
	}
	point := bytes.IndexByte(b, '.')
	if point < 0 {
		point = len(b)
	}
	places := point + exponent + 9 // how many digits make whole billionths
	read, more := 0, false         // more: the digits behind those are not all zeros
	for i, c := range b {
		switch {
		case i == point:
			continue
		case c < '0' || c > '9':
			return 0, false
		case read >= places:
			more = more || c != '0'
		case n < maxNumber:
			n = n*10 + int64(c-'0')
		}
		read++
	}
	for i := read; i < places && n > 0 && n < maxNumber; i++ {
		n *= 10
	}
	if more {
		n++
	}
	return n, read > 0 && n < maxNumber
}
