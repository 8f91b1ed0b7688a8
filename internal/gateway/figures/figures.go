// Package figures counts what became of calls: by project, model and key, minute by minute for the
// last hour. It is what the admin API shows beside the limits; the books have what is older.
//
// A call is counted once, where its project, model and key meet. What a project or a model has used
// is added up when somebody looks, so that counting costs one lookup and one lock that nearly nobody
// else wants. Memory is bounded: only minutes with calls take any, and the number of names is limited.
package figures

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Name says whose call it is.
type Name struct {
	Project string // the path, with the user
	Model   string // the name of the quota; empty: the request called no model
	Key     string // the id of the virtual key; empty: the request had none
}

// Call is what became of a call.
type Call struct {
	Denied  bool   // a limit has denied it; otherwise it was sent to a provider
	Limit   string // the limit that has denied it
	Refused bool   // the gateway did not accept it: it is not allowed, or the store did not answer
	Failed  bool   // the provider has not answered with a success, or the client has left
	Waited  bool   // it has waited for its turn
	Input   int64  // tokens that it was charged
	Output  int64
	Dollars int64 // billionths of a dollar

	KeysOwn bool // the project is the key's own, so an operator has named it

	// Estimated is how many tokens were reserved for a call whose usage the provider has reported.
	// It is 0 for other calls.
	Estimated int64
}

// Other stands for what has no name of its own because there are too many names.
const Other = "(other)"

// How many names there are at most. Those that an operator has named are apart, so that names that
// clients invent leave them their room.
const (
	mostNamed   = 32 << 10
	mostUnnamed = 8 << 10
)

// Figures counts calls. Its methods may be called concurrently. Make one with New.
type Figures struct {
	named   func(of Name, keysOwn bool) bool
	seed    maphash.Seed
	shards  [shards]shard
	ofNamed atomic.Int64 // how many lots there are that are named
	unnamed atomic.Int64 // and that are not
	swept   atomic.Int64 // the minute of the last sweep
}

const shards = 64

type shard struct {
	mu   sync.RWMutex
	lots map[Name]*lot
	_    [24]byte // so that no two shards share a cache line
}

// New returns figures without calls. named reports whether an operator has named the project and the
// model of a name, and not a client; keysOwn says so of the project.
func New(named func(of Name, keysOwn bool) bool) *Figures {
	f := &Figures{named: named, seed: maphash.MakeSeed()}
	for i := range f.shards {
		f.shards[i].lots = map[Name]*lot{}
	}
	return f
}

// Count counts a call that ends now.
func (f *Figures) Count(of Name, c *Call) {
	for !f.lot(of, c.KeysOwn).count(time.Now(), c) {
	} // a sweep has just closed the lot
}

// lot returns where calls of a name are counted.
func (f *Figures) lot(of Name, keysOwn bool) *lot {
	s := f.shard(of)
	s.mu.RLock()
	l := s.lots[of]
	s.mu.RUnlock()
	if l != nil {
		return l
	}
	return f.open(of, keysOwn)
}

func (f *Figures) shard(of Name) *shard {
	var h maphash.Hash
	h.SetSeed(f.seed)
	h.WriteString(of.Project)
	h.WriteByte(0)
	h.WriteString(of.Model)
	h.WriteByte(0)
	h.WriteString(of.Key)
	return &f.shards[h.Sum64()%shards]
}

// open makes a lot for a name, if there is room. If there is none even after a sweep, calls of the
// name are counted under one that says less.
func (f *Figures) open(of Name, keysOwn bool) *lot {
	l := f.openIfRoom(of, f.named(of, keysOwn))
	for l == nil {
		of = of.less()
		l = f.openIfRoom(of, f.named(of, false))
	}
	return l
}

// openIfRoom returns the lot of a name, and makes one if there is room. It returns nil if there is none.
func (f *Figures) openIfRoom(of Name, named bool) *lot {
	count, most := &f.unnamed, int64(mostUnnamed)
	if named {
		count, most = &f.ofNamed, mostNamed
	}
	if count.Load() >= most {
		f.sweep(time.Now())
	}
	s := f.shard(of)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lots[of]; l != nil {
		return l
	}
	if count.Add(1) > most && of != rest {
		count.Add(-1)
		return nil
	}
	l := &lot{Name: Name{strings.Clone(of.Project), strings.Clone(of.Model), strings.Clone(of.Key)}, counted: count}
	s.lots[l.Name] = l
	return l
}

// rest is the name of calls for which there is no other.
var rest = Name{Project: Other, Model: Other}

// less returns a name that stands for more calls than this one: those of the project above, of any
// project, or all.
func (n Name) less() Name {
	if i := strings.LastIndexByte(n.Project, '/'); i > 0 {
		n.Project = n.Project[:i]
		return n
	}
	if n.Project != Other {
		return Name{Project: Other, Model: n.Model}
	}
	return rest
}

// sweep forgets the names that had no call for an hour. It does so once a minute at most.
func (f *Figures) sweep(now time.Time) {
	minute := int64(tickOf(now, time.Minute))
	if last := f.swept.Load(); last == minute || !f.swept.CompareAndSwap(last, minute) {
		return
	}
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		for name, l := range s.lots {
			if l.close(now) {
				delete(s.lots, name)
				l.counted.Add(-1)
			}
		}
		s.mu.Unlock()
	}
}
