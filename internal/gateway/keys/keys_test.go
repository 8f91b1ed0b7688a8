package keys

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/alone"
)

var form = regexp.MustCompile(`^rl-([a-z2-7]{10})-[a-z2-7]{32}$`)

func TestForm(t *testing.T) {
	r := ring(t, nil)
	seen := map[string]bool{}
	for range 100 {
		secret, k := create(t, r, "p", "", 0)
		if match := form.FindStringSubmatch(secret); match == nil || match[1] != k.ID {
			t.Errorf("%q of %q", secret, k.ID)
		}
		for _, part := range strings.Split(secret, "-")[1:] {
			if seen[part] {
				t.Errorf("%s is there twice", part)
			}
			seen[part] = true
		}
	}
}

// A secret is valid, to the second, from its creation until its key expires or is revoked,
// or until it is replaced and its grace period has passed.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond) // the clock is between two seconds
		start := time.Now().UTC().Truncate(time.Second)
		r := ring(t, nil)
		at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))) }

		short, shortKey := create(t, r, "p", "short", 1500*time.Millisecond) // ends at 1.8 s, so at 2 s
		first, key := create(t, r, "p", "ends", time.Hour)
		for _, each := range []Key{shortKey, key} {
			if each.Created != start || each.Expires.Nanosecond() != 0 || each.Expires.Location() != time.UTC {
				t.Errorf("%+v", each)
			}
		}
		if key.Expires != start.Add(time.Hour+time.Second) {
			t.Errorf("it expires at %v", key.Expires)
		}
		at(2*time.Second - 1)
		wantKey(t, r, short, true, shortKey)
		at(2 * time.Second)
		wantKey(t, r, short, false, Key{})

		at(10*time.Second + 1)
		second, again := rotate(t, r, key.ID, 5*time.Second) // until 15 s and a little, so until 16 s
		described := key
		described.PreviousUntil = start.Add(16 * time.Second)
		if got := r.List(); !same(again, described) || !contains(got, described) {
			t.Errorf("the key is not among %+v; want (-), got (+):\n%s", got, difference(described, again))
		}
		wantKey(t, r, first, true, key)
		wantKey(t, r, second, true, key)
		at(16*time.Second - 1)
		wantKey(t, r, first, true, key)
		at(16 * time.Second)
		wantKey(t, r, first, false, Key{})
		wantKey(t, r, second, true, key)
		if got := r.List(); !contains(got, key) {
			t.Errorf("after the grace: %+v", got)
		}

		third, _ := rotate(t, r, key.ID, 20*time.Second)  // until 36 s
		fourth, _ := rotate(t, r, key.ID, 10*time.Second) // until 26 s
		for _, each := range []string{second, third, fourth} {
			wantKey(t, r, each, true, key)
		}
		at(26 * time.Second)
		wantKey(t, r, second, true, key)
		wantKey(t, r, third, false, Key{})
		fifth, again := rotate(t, r, key.ID, 0) // ends every grace period
		if !same(again, key) {
			t.Errorf("%+v", again)
		}
		for _, each := range []string{second, third, fourth} {
			wantKey(t, r, each, false, Key{})
		}
		wantKey(t, r, fifth, true, key)
		last, _ := rotate(t, r, key.ID, 24*time.Hour)
		at(time.Hour + time.Second - 1)
		wantKey(t, r, fifth, true, key)
		wantKey(t, r, last, true, key)
		at(time.Hour + time.Second) // no grace period outlives the key
		wantKey(t, r, fifth, false, Key{})
		wantKey(t, r, last, false, Key{})
		if _, _, err := r.Rotate(bg, key.ID, time.Hour); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "it has expired on "+key.Expires.Format(time.RFC3339)) {
			t.Errorf("an expired key: %v", err)
		}
		if got := r.List(); len(got) != 2 {
			t.Errorf("expired keys are listed until they are revoked: %v", got)
		}
		revoke(t, r, key.ID)
		revoke(t, r, shortKey.ID)
		if got := r.List(); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

func TestRevoke(t *testing.T) {
	r := ring(t, nil)
	other, otherKey := create(t, r, "p", "", 0)
	before, k := create(t, r, "p", "", 0)
	now, _ := rotate(t, r, k.ID, time.Hour)
	revoke(t, r, k.ID)
	wantKey(t, r, before, false, Key{})
	wantKey(t, r, now, false, Key{})
	wantKey(t, r, other, true, otherKey)
	if err := r.Revoke(bg, k.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked twice: %v", err)
	}
	if _, _, err := r.Rotate(bg, k.ID, 0); !errors.Is(err, ErrUnknown) {
		t.Errorf("rotated when it was revoked: %v", err)
	}
}

func TestList(t *testing.T) {
	r := ring(t, nil)
	if got, _ := json.Marshal(r.List()); string(got) != "[]" {
		t.Errorf("no keys are %s", got)
	}
	var want []Key
	for _, project := range []string{"b", "a", "c", "a", "b", "a"} {
		_, k := create(t, r, project, "for "+project, 0)
		want = append(want, k)
	}
	slices.SortFunc(want, func(a, b Key) int { return strings.Compare(a.Project+" "+a.ID, b.Project+" "+b.ID) })
	if diff := difference(want, r.List()); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	r.List()[0].Project = "mine"
	if got := r.List(); !slices.EqualFunc(got, want, same) {
		t.Error("a list is not the caller's alone")
	}
}

// A text that is no key, or not quite one, is not valid.
func TestFindNonsense(t *testing.T) {
	r := ring(t, nil)
	secret, k := create(t, r, "p", "", 0)
	_, other := create(t, r, "q", "", 0)
	id, rest, _ := split(secret)
	for _, each := range []string{
		"", "-", "--", "rl--", "rl-", Prefix + id, Prefix + id + "-", rest, id + "-" + rest, secret + "a", secret + "\n", " " + secret, secret[1:], secret[:len(secret)-1],
		strings.ToUpper(secret), "Bearer " + secret, "sk-" + secret[3:], join(other.ID, rest), join(id, strings.Repeat("a", secretSize)), join("aaaaaaaaaa", rest),
		strings.Repeat("x", len(secret)), strings.Repeat("\x00", len(secret)), strings.Repeat("rl-", 1<<20),
	} {
		wantKey(t, r, each, false, Key{})
	}
	for i := range secret {
		for _, c := range []byte{secret[i] ^ 1, secret[i] ^ 0x20, 0, '-', 0xff} {
			if c != secret[i] {
				wantKey(t, r, secret[:i]+string([]byte{c})+secret[i+1:], false, Key{})
			}
		}
	}
	wantKey(t, r, secret, true, k)
}

// An invalid change changes nothing, and its error says what is wrong.
func TestBadInput(t *testing.T) {
	r := ring(t, nil)
	secret, k := create(t, r, "p", "", 0)
	for _, bad := range []struct {
		project, name string
		ttl           time.Duration
		says          string
	}{
		{"", "", 0, "the project id is empty"},
		{"a b", "", 0, "only visible ASCII"},
		{strings.Repeat("p", 129), "", 0, "it may have 128"},
		{"p", strings.Repeat("n", 101), 0, "its name has 101 bytes: it may have 100"},
		{"p", "a\nb", 0, "control characters"},
		{"p", "a\u0085b", 0, "control characters"},
		{"p", "a\xffb", 0, "must be UTF-8"},
		{"p", "", -1, "must not be negative"},
	} {
		got, key, err := r.Create(bg, bad.project, bad.name, bad.ttl)
		if got != "" || !same(key, Key{}) || !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), "ratelimit: invalid key: ") || !strings.Contains(err.Error(), bad.says) || strings.Count(err.Error(), "ratelimit:") != 1 {
			t.Errorf("%+v: %q, %+v, %v", bad, got, key, err)
		}
	}
	if _, _, err := r.Rotate(bg, k.ID, -1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative grace: %v", err)
	}
	for _, id := range []string{"", "aaaaaaaaaa", secret, k.ID + "/1", k.ID + " ", strings.ToUpper(k.ID), "null", strings.Repeat("a", 1<<20), "\x00"} {
		_, _, rotating := r.Rotate(bg, id, 0)
		for _, err := range []error{rotating, r.Revoke(bg, id)} {
			if !errors.Is(err, ErrUnknown) || errors.Is(err, ErrInvalid) || len(err.Error()) > 200 || strings.Contains(err.Error(), secret[14:20]) {
				t.Errorf("%.60q: %v", id, err)
			}
		}
	}
	wantKey(t, r, secret, true, k)
	if got := r.List(); len(got) != 1 || !same(got[0], k) {
		t.Errorf("%+v", got)
	}
	longest := strings.Repeat("ä", 50)
	create(t, r, strings.Repeat("p", 128), longest, 1<<63-1)
	create(t, r, "!~", "a key's name: <b>\"ok\" \U0001f511", time.Nanosecond)
}

func TestMostKeys(t *testing.T) {
	r := ring(t, nil)
	if r.maxKeys != 10_000 {
		t.Errorf("there may be %d", r.maxKeys)
	}
	r.maxKeys = 3
	var k Key
	for range 3 {
		_, k = create(t, r, "p", "", 0)
	}
	if _, _, err := r.Create(bg, "p", "", 0); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "there may be 3") {
		t.Error(err)
	}
	rotate(t, r, k.ID, 0) // a new secret is no new key
	revoke(t, r, k.ID)
	create(t, r, "p", "", 0)
}

func TestFindAllocatesNothing(t *testing.T) {
	if !alone.Test(t) {
		return
	}
	r := ring(t, nil)
	secret, k := create(t, r, "p", "", time.Hour)
	unknown := join("aaaaaaaaaa", secret[len(secret)-secretSize:])
	rotated, _ := rotate(t, r, k.ID, time.Hour)
	for name, each := range map[string]string{"right": rotated, "in its grace": secret, "unknown": unknown, "nonsense": "sk-123"} {
		if n := testing.AllocsPerRun(100, func() { r.Find(each) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	r := ring(b, nil)
	secret, _ := create(b, r, "p", "", time.Hour)
	for range 1000 {
		create(b, r, "p", "", time.Hour)
	}
	b.Run("right", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Find(secret)
		}
	})
	b.Run("unknown", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Find("rl-aaaaaaaaaa-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
		}
	})
}

// Index finds a key in the middle of a text, and not a text that only begins like one.
func TestIndex(t *testing.T) {
	key := join(random(idSize), random(secretSize))
	for text, want := range map[string]int{
		"": -1, "rl-": -1, key: 0, "x" + key: 1, "curl-a url-b " + key + " rl-": 13, "rl-rl-" + key: 6, key[:Size-1]: -1, "x" + key[:Size-1] + "-": -1,
		strings.ToUpper(key): -1,
	} {
		if got := Index(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
