package redistest

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const slots = 16384

// Cluster is some masters that share the keys.
type Cluster struct {
	Servers []*Server
}

// NewCluster returns a cluster of n masters, each with an equal part of the slots, that runs until
// the test ends. It takes more than two seconds, because a new master waits that long before it
// serves.
func NewCluster(t testing.TB, n int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range n {
		c.Servers = append(c.Servers, start(t, Options{Args: args, cluster: true}))
	}
	for i, s := range c.Servers {
		doOrFail(t, s, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		doOrFail(t, s, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/n), strconv.Itoa((i+1)*slots/n-1))
		for _, other := range c.Servers[:i] {
			doOrFail(t, s, "CLUSTER", "MEET", host, other.port.Number(), other.bus.Number())
		}
	}
	c.Await(t)
	return c
}

// Await waits until every master reports that the cluster is complete, for example after a restart.
func (c *Cluster) Await(t testing.TB) {
	t.Helper()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.Servers))
	for _, s := range c.Servers {
		eventually(t, "the cluster", func() bool {
			answer, _ := s.Do("CLUSTER", "INFO")
			info, _ := answer.(string)
			return strings.Contains(info, "cluster_state:ok\r\n") && strings.Contains(info, known)
		})
	}
}

// Addrs returns the addresses of the masters.
func (c *Cluster) Addrs() []string { return addrs(c.Servers) }

// URL returns the addresses for clients.
func (c *Cluster) URL() string { return urlOf(c.Addrs(), "", nil) }

func addrs(servers []*Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr)
	}
	return all
}

// urlOf returns one URL with several addresses.
func urlOf(addrs []string, path string, query url.Values) string {
	u := url.URL{Scheme: "redis", Host: addrs[0], Path: path}
	if query == nil {
		query = url.Values{}
	}
	query["addr"] = addrs[1:]
	u.RawQuery = query.Encode()
	return u.String()
}
