package redistest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const masterSet = "mymaster"

// Sentinel is a master and its replica, and three sentinels that watch them. They promote the
// replica when the master has not answered two of them for about a second.
type Sentinel struct {
	Servers   []*Server // the first master and the first replica
	Sentinels []*Server
}

// NewSentinel returns servers and sentinels that know each other, and run until the test ends. args
// are added to those of the servers.
func NewSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	master := New(t, args...)
	replica := New(t, append([]string{"--replicaof", host, master.port.Number()}, args...)...)
	n := &Sentinel{Servers: []*Server{master, replica}}
	// With different timeouts, no two start a failover at the same time, and vote for themselves.
	for _, ms := range []int{1000, 1200, 1400} {
		n.Sentinels = append(n.Sentinels, newSentinel(t, master, ms))
	}
	for _, s := range n.Sentinels {
		eventually(t, "the sentinels to meet", func() bool {
			answer, _ := s.Do("SENTINEL", "CKQUORUM", masterSet)
			return strings.HasPrefix(fmt.Sprint(answer), "OK 3 usable")
		})
	}
	n.AwaitReplica(t)
	for _, s := range n.Sentinels {
		setPeriods(t, s, "1000")
	}
	return n
}

// newSentinel returns a sentinel that considers a master dead after so many milliseconds.
func newSentinel(t testing.TB, master *Server, ms int) *Server {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s 2
sentinel down-after-milliseconds %[1]s %[4]d
sentinel failover-timeout %[1]s 3000
`, masterSet, host, master.port.Number(), ms)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir, config: config, Args: []string{"--sentinel"}})
	setPeriods(t, s, "100")
	return s
}

// setPeriods lets a sentinel ask for information every so many milliseconds, and tolerate a slow
// machine. A failover takes more than a second, and requires information that is at most three of
// these periods, and five ping periods, old. After a failover a sentinel connects again within a
// ping period, and must not consider the master dead before.
func setPeriods(t testing.TB, sentinel *Server, ms string) {
	t.Helper()
	doOrFail(t, sentinel, "SENTINEL", "DEBUG", "info-period", ms, "publish-period", ms, "ping-period", "400",
		"tilt-trigger", "60000")
}

// URL returns the addresses of the sentinels for clients.
func (n *Sentinel) URL() string {
	return urlOf(addrs(n.Sentinels), "/0", url.Values{"master_set": {masterSet}})
}

// Master returns the server that a sentinel reports as master, or nil if no sentinel answers.
func (n *Sentinel) Master() *Server {
	for _, s := range n.Sentinels {
		if master := n.masterOf(s); master != nil {
			return master
		}
	}
	return nil
}

// Failover makes the replica the master, although the present master works, and waits until all
// sentinels know. It returns the new master, which has everything that was written before the call.
func (n *Sentinel) Failover(t testing.TB) *Server {
	t.Helper()
	old := n.Master()
	if old == nil {
		t.Fatal("ratelimit: no sentinel answers")
	}
	n.AwaitReplica(t)
	lead := n.Sentinels[slices.IndexFunc(n.Sentinels, func(s *Server) bool { return n.masterOf(s) == old })]
	eventually(t, "the failover", func() bool {
		if n.masterOf(lead) != old {
			return true
		}
		lead.Do("SENTINEL", "FAILOVER", masterSet) // refused while there is one
		return false
	})
	return n.AwaitMaster(t, old)
}

// AwaitMaster waits until a server other than the given one is the master, and all sentinels that
// answer report it. It returns that server.
func (n *Sentinel) AwaitMaster(t testing.TB, other *Server) *Server {
	t.Helper()
	var master *Server
	eventually(t, "another master", func() bool {
		master = n.Master()
		if master == nil || master == other {
			return false
		}
		role, _ := master.Do("ROLE")
		return strings.HasPrefix(fmt.Sprint(role), "[master ") &&
			!slices.ContainsFunc(n.Sentinels, func(s *Server) bool {
				reported := n.masterOf(s)
				return reported != nil && reported != master
			})
	})
	return master
}

// AwaitReplica waits until the replica has everything that was written to the master before the
// call, and all sentinels that answer would promote it. After a failover this takes some seconds,
// in which there are two masters.
func (n *Sentinel) AwaitReplica(t testing.TB) {
	t.Helper()
	written := int64(-1)
	eventually(t, "the replica", func() bool {
		master := n.Master()
		if master == nil {
			return false
		}
		has, all := progress(master)
		if written < 0 {
			written = all
		}
		return has > 0 && has >= written
	})
	for _, s := range n.Sentinels {
		eventually(t, "the sentinels to know the replica", func() bool { return seesReplica(s) })
	}
}

// seesReplica reports whether a sentinel sees a replica that follows the master, or does not
// answer. A sentinel that does not see it yet may still demote the replica after it was promoted.
func seesReplica(sentinel *Server) bool {
	answer, err := sentinel.Do("SENTINEL", "REPLICAS", masterSet)
	about := fmt.Sprint(answer)
	return err != nil || strings.Contains(about, " flags slave ") &&
		strings.Contains(about, " role-reported slave ") && strings.Contains(about, " master-link-status ok ")
}

// progress returns how many bytes of all that was written the replica has.
func progress(master *Server) (has, all int64) {
	info, _ := master.Do("INFO", "replication")
	for line := range strings.Lines(fmt.Sprint(info)) {
		if _, rest, found := strings.Cut(line, "state=online,offset="); found {
			fmt.Sscan(strings.ReplaceAll(rest, ",", " "), &has)
		}
		if rest, found := strings.CutPrefix(line, "master_repl_offset:"); found {
			fmt.Sscan(rest, &all)
		}
	}
	return has, all
}

// masterOf returns the server that a sentinel reports as master, or nil if it does not answer.
func (n *Sentinel) masterOf(sentinel *Server) *Server {
	answer, _ := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet)
	parts, _ := answer.([]any)
	if len(parts) != 2 {
		return nil
	}
	addr := fmt.Sprintf("%v:%v", parts...)
	i := slices.IndexFunc(n.Servers, func(s *Server) bool { return s.Addr == addr })
	if i < 0 {
		return nil
	}
	return n.Servers[i]
}
