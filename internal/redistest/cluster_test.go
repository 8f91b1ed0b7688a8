package redistest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/rueidis"
)

// dial returns a client for a URL.
func dial(t *testing.T, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := NewCluster(t, 3)
	option, err := rueidis.ParseURL(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(option.InitAddress, cluster.Addrs()) {
		t.Fatal(option.InitAddress, cluster.Addrs())
	}
	client := dial(t, option)
	const keys = 100
	for i := range keys {
		set := client.B().Set().Key(fmt.Sprint("key", i)).Value("value").Build()
		if err := client.Do(t.Context(), set).Error(); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	for _, s := range cluster.Servers {
		size := doOrFail(t, s, "DBSIZE").(int64)
		if size == 0 {
			t.Error("a master has no key")
		}
		total += size
	}
	if total != keys {
		t.Error(total)
	}

	if err := cluster.Servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	cluster.Await(t)
	expect(t, cluster.Servers[0], "OK", "SET", "b", "value") // slot 3300
	expect(t, cluster.Servers[1], "OK", "SET", "c", "value") // slot 7365
	expect(t, cluster.Servers[2], "OK", "SET", "a", "value") // slot 15495
}
