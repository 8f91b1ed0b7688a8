package price_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/price"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]price.Amount{
		"0": 0, "2.50": 2_500_000_000, "2.5": 2_500_000_000, "10": 10 * price.Dollar, "0.000000001": 1,
		"0.0000000010": 1, "007": 7 * price.Dollar, "9223372036.854775807": math.MaxInt64,
	} {
		if got, err := price.Parse(text); err != nil || got != want {
			t.Errorf("%s is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", "$1", " 1", "1_000", "0x1", "NaN", "1.2.3", "٣", "0.0000000001", "9223372036.854775808", "99999999999"} {
		if got, err := price.Parse(text); err == nil || !strings.Contains(err.Error(), "it m") {
			t.Errorf("%q is %d, %v, want an error that says what is allowed", text, got, err)
		}
	}
}

func TestAmountString(t *testing.T) {
	for a, want := range map[price.Amount]string{
		0: "$0.00", 2_500_000_000: "$2.50", 1: "$0.000000001", 175_000: "$0.000175", -1_500_000_000: "-$1.50",
		math.MaxInt64: "$9,223,372,036.854775807", math.MinInt64: "-$9,223,372,036.854775808",
	} {
		if got := a.String(); got != want {
			t.Errorf("%d is %s, want %s", int64(a), got, want)
		}
	}
}

// What is parsed is what big.Rat reads, or an error; and what is written is read as the same.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"2.50", "0", "1e9", "00.1", "9223372036.854775808", "1.0000000000", "1/2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := price.Parse(text)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok || want.Mul(want, big.NewRat(price.Dollar, 1)).Cmp(big.NewRat(int64(got), 1)) != 0 {
			t.Fatalf("%q is %d, want %v", text, got, want)
		}
		if again, err := price.Parse(got.Decimal()); again != got || err != nil {
			t.Fatalf("%q is written %s, which is %d, %v", text, got.Decimal(), again, err)
		}
	})
}

func TestAmountJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := price.Amount(rapid.Int64Min(0).Draw(t, "amount"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got price.Amount
		if err := json.Unmarshal(text, &got); err != nil || got != want {
			t.Fatalf("%d is written %s, which is %d, %v", want, text, got, err)
		}
	})
}

// What is left is rounded down, and what a call may cost up, to a cent or to two digits.
func TestFloorAndCeil(t *testing.T) {
	for a, want := range map[price.Amount][2]string{
		0: {"$0.00", "$0.00"}, 1: {"$0.000000001", "$0.000000001"}, 123: {"$0.00000012", "$0.00000013"}, 120: {"$0.00000012", "$0.00000012"},
		999_999_999: {"$0.99", "$1.00"}, 1_239_999_999: {"$1.23", "$1.24"}, 5_000*price.Dollar + 1: {"$5,000.00", "$5,000.01"},
		300_000_000: {"$0.30", "$0.30"}, math.MaxInt64: {"$9,223,372,036.85", "$9,223,372,036.854775807"},
	} {
		if down, up := a.Floor().String(), a.Ceil().String(); down != want[0] || up != want[1] {
			t.Errorf("%v: %s and %s, want %s", a, down, up, want)
		}
	}
}
