package wire

import (
	"net/http"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/alone"
)

// To find the framing of a request allocates nothing. A map of eight headers is full, and would grow if one of them
// was assigned again.
func TestFrameOfAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	const text = "Host:gateway.test\nAuthorization:Bearer x\nContent-Type:application/json\nAccept:*/*\n" +
		"User-Agent:test\nX-Lang:go\nX-Retry:0\nContent-Length:5\n"
	var h http.Header
	parse := func() { h = parseFields(text) }
	without := testing.AllocsPerRun(100, parse)
	with := testing.AllocsPerRun(100, func() {
		parse()
		if f, err := frameOf(h, false); err != nil || f.length != 5 {
			t.Errorf("%+v, %v", f, err)
		}
	})
	if with != without {
		t.Errorf("%v allocations with the framing, %v without", with, without)
	}
}
