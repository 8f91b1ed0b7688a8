package keys

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// A ticket stands for its key until it expires or its secret ends, and for nothing else.
func TestTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ring(t, nil)
		secret, key := create(t, r, "p", "laptop", 0)
		_, other := create(t, r, "q", "", 0)
		until := time.Now().Add(time.Hour)
		ticket, ok := r.Ticket(secret, until)
		if !ok || strings.Contains(ticket, secret[dash+1:]) {
			t.Fatalf("the ticket is %q", ticket)
		}
		found := func(ticket string) bool {
			k, ok := r.FindTicket(ticket)
			if ok && (k.ID != key.ID || k.Project != "p") {
				t.Errorf("%q leads to %+v", ticket, k)
			}
			return ok
		}
		if !found(ticket) {
			t.Error("the ticket is not valid")
		}
		id, rest, _ := strings.Cut(ticket, ".")
		expires, mac, _ := strings.Cut(rest, ".")
		for _, forged := range []string{
			"", ".", "..", secret, id, id + ".", id + "." + expires, id + "." + expires + ".", other.ID + "." + rest,
			id + ".9" + expires + "." + mac, id + "." + expires + "." + mac + "00", id + "." + expires + "." + mac[2:],
			id + ".+" + expires + "." + mac, "x." + rest, ticket + ".", id + ".99999999999999999999." + mac,
		} {
			if found(forged) {
				t.Errorf("%q is taken for a ticket", forged)
			}
		}
		if _, ok := r.Ticket(testkit.Forged(secret), until); ok {
			t.Error("there is a ticket for a key that is not valid")
		}
		rotate(t, r, key.ID, time.Minute)
		if !found(ticket) {
			t.Error("the ticket is not valid during the grace period of its secret")
		}
		time.Sleep(2 * time.Minute)
		if found(ticket) {
			t.Error("the ticket is valid after its secret")
		}
	})
}

func TestTicketExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ring(t, nil)
		secret, _ := create(t, r, "p", "", 30*time.Minute)
		short, _ := r.Ticket(secret, time.Now().Add(time.Minute))
		long, _ := r.Ticket(secret, time.Now().Add(time.Hour))
		for _, test := range []struct {
			after       time.Duration
			short, long bool
		}{{0, true, true}, {time.Minute, false, true}, {30 * time.Minute, false, false}} {
			time.Sleep(test.after)
			_, s := r.FindTicket(short)
			_, l := r.FindTicket(long)
			if s != test.short || l != test.long {
				t.Errorf("after another %v: %v and %v", test.after, s, l)
			}
		}
	})
}
