package store

import (
	"encoding/binary"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
)

// Describe returns what an account says of limits at a time, its entries, and how often
// its clock went back, which is the part of its epoch that is not random.
func Describe(a *limit.Account, at int64, limits []limit.Limit) string {
	if a.FullAt() <= at {
		return "full"
	}
	a = clone(a)
	a.Fit(nil, at)
	b, _ := a.AppendBinary(nil)
	head := 1
	for range 2 { // the time until which the account is in use, and the time of the last call
		_, n := binary.Varint(b[head:])
		head += n
	}
	epoch, _ := binary.Uvarint(b[head:])
	all := fmt.Sprintf("%x %d", b[:head], epoch&(1<<16-1))
	for at, n := range a.Entries() {
		all += fmt.Sprintf("\n%d at %d", n, at)
	}
	for _, l := range limits {
		all += fmt.Sprintf("\n%+v", a.Check(l, at, 0))
	}
	return all
}

// SetMaxLines sets how many separate lines an hour of the books has at most.
func SetMaxLines(m *Memory, n int) { m.books.maxLines = n }

// Enter books one entry.
func (m *Memory) Enter(e books.Entry) { m.enter(e) }
