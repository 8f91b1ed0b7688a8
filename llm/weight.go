package llm

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

const (
	weightDigits = 4      // behind the point
	weightOne    = 10_000 // the weight 1, in its smallest parts

	// MaxWeight is the largest weight of a token.
	MaxWeight = 1000
)

// Weight is as how many tokens a token counts: a decimal number from 0 to [MaxWeight], with up to
// four digits behind the point. The zero Weight says nothing. [ParseWeight] makes others.
type Weight uint32 // in ten-thousandths, plus 1

var errWeight = fmt.Errorf("it must be a number from 0 to %d, with up to %d digits behind the point", MaxWeight, weightDigits)

// ParseWeight returns the weight that a text such as "0.1" or "5" says, exactly.
func ParseWeight(text string) (Weight, error) {
	whole, part, hasPoint := strings.Cut(text, ".")
	if strings.Trim(whole+part, "0123456789") != "" || whole == "" || len(whole) > len("1000") || hasPoint && part == "" || len(part) > weightDigits {
		return 0, fmt.Errorf("ratelimit: weight %.40q: %w", text, errWeight)
	}
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", weightDigits-len(part)), 10, 32)
	if err != nil || n > MaxWeight*weightOne {
		return 0, fmt.Errorf("ratelimit: weight %.40q: %w", text, errWeight)
	}
	return Weight(n) + 1, nil
}

// IsSet reports whether the weight says anything: 0 does.
func (w Weight) IsSet() bool { return w > 0 }

// Validate returns what is wrong with a weight that [ParseWeight] has not made, or nil.
func (w Weight) Validate() error {
	if w > MaxWeight*weightOne+1 {
		return fmt.Errorf("ratelimit: weight %v: %w", w, errWeight)
	}
	return nil
}

// String returns the weight as [ParseWeight] reads it, or nothing.
func (w Weight) String() string {
	if w == 0 {
		return ""
	}
	n := int(w - 1)
	text := strconv.Itoa(n / weightOne)
	if part := n % weightOne; part > 0 {
		text += "." + strings.TrimRight(strconv.Itoa(weightOne + part)[1:], "0")
	}
	return text
}

// MarshalJSON returns the weight as a number, or null.
func (w Weight) MarshalJSON() ([]byte, error) {
	if w == 0 {
		return []byte("null"), nil
	}
	return []byte(w.String()), nil
}

// UnmarshalJSON reads a number, exactly, or null.
func (w *Weight) UnmarshalJSON(text []byte) (err error) {
	if string(text) == "null" {
		*w = 0
		return nil
	}
	if len(text) > 0 && text[0] == '"' {
		return errors.New("ratelimit: a weight that is a string: " + errWeight.Error())
	}
	*w, err = ParseWeight(string(text))
	return err
}

// or returns the weight, or another one if it says nothing.
func (w Weight) or(other Weight) Weight {
	if w == 0 {
		return other
	}
	return w
}

// maxNumber bounds what tokens count as: every number up to it is exact as a float.
const maxNumber = 1 << 53

// one is the weight of a token that counts as one.
const one Weight = weightOne + 1

// weighed is a sum of tokens by their weights, in ten-thousandths: 128 bits.
type weighed struct{ hi, lo uint64 }

// add adds tokens of a weight, which is set.
func (s *weighed) add(n int64, w Weight) {
	hi, lo := bits.Mul64(uint64(n), uint64(w-1))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi += hi + carry
}

// tokens returns the sum in tokens, rounded up, up to maxNumber.
func (s weighed) tokens() int64 {
	if s.hi >= weightOne {
		return maxNumber
	}
	n, rest := bits.Div64(s.hi, s.lo, weightOne)
	if rest > 0 {
		n++
	}
	return int64(min(n, maxNumber))
}

// quotient returns how many tokens of a weight count as n, rounded down. There must be a number of
// tokens, up to maxNumber, that counts as more.
func quotient(n int, w Weight) int {
	hi, lo := bits.Mul64(uint64(n), weightOne)
	tokens, _ := bits.Div64(hi, lo, uint64(w-1))
	return int(tokens)
}
