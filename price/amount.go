package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/numeral"
)

// Amount is an amount of money in billionths of a dollar, which are called nanodollars.
type Amount int64

// Unknown is the price of a call that has none.
const Unknown Amount = -1

// Dollar is a dollar, as an [Amount] or a [Rate].
const Dollar = 1_000_000_000

// decimals is the number of digits behind the point that a nanodollar has.
const decimals = 9

// Parse reads a decimal number of dollars such as "2.50", exactly. It refuses signs, exponents, more
// than nine digits behind the point, and more than an Amount can hold.
func Parse(text string) (Amount, error) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if !digits(whole) || pointed && !digits(fraction) {
		return 0, fmt.Errorf("ratelimit: %.40q is no number of dollars: it must be one such as 2.50", text)
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > decimals {
		return 0, fmt.Errorf("ratelimit: %.40q has parts of a billionth of a dollar: it may have %d digits behind the point", text, decimals)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("ratelimit: %.40q is too much: it may be %d dollars", text, int64(math.MaxInt64/Dollar))
	}
	return Amount(n), nil
}

// digits reports whether a text is digits alone, and has one at least.
func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// String returns the amount for people, with two digits behind the point or as many as it needs:
// "$2.50", "$0.000175", "$5,000.00".
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign = "-"
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(a.Decimal(), "-"), ".")
	n, _ := strconv.ParseInt(whole, 10, 64) // there are ten digits at most
	return sign + "$" + numeral.Grouped(n) + "." + fraction
}

// Floor returns the amount rounded down as far as people care: to a cent if it is a dollar or more,
// and otherwise to two digits. It is for what is left.
func (a Amount) Floor() Amount {
	u := a.unit()
	return a / u * u
}

// Ceil is Floor rounded up. It is for what a call may cost.
func (a Amount) Ceil() Amount {
	floor := a.Floor()
	if u := a.unit(); floor < a && floor <= math.MaxInt64-u {
		return floor + u
	}
	return max(floor, a)
}

// unit returns the unit to which people round an amount that is not negative.
func (a Amount) unit() Amount {
	u := Amount(Dollar / 100)
	for a < 10*u && u > 1 && a < Dollar {
		u /= 10
	}
	return u
}

// Decimal returns the amount as a decimal number of dollars: "2.50".
func (a Amount) Decimal() string {
	sign, n := "", uint64(a)
	if a < 0 {
		sign, n = "-", -n
	}
	fraction := strings.TrimRight(fmt.Sprintf("%09d", n%Dollar), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return sign + strconv.FormatUint(n/Dollar, 10) + "." + fraction
}

// MarshalJSON writes the amount as a number of dollars.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.Decimal()), nil }

// UnmarshalJSON reads a number of dollars, exactly.
func (a *Amount) UnmarshalJSON(text []byte) error {
	n, err := Parse(string(text))
	*a = n
	return err
}
