package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// unsaved returns an error that names the servers without an append-only file, which have forgotten
// everything, or much, once they are restarted; or nil. A server that does not answer is passed over, because
// its user may not call INFO.
func (s *Store) unsaved() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	var unsaved []string
	for address, node := range s.client.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Section("persistence").Build()).ToString()
		if err == nil && strings.Contains(info, "aof_enabled:0") {
			unsaved = append(unsaved, address)
		}
	}
	if len(unsaved) == 0 {
		return nil
	}
	slices.Sort(unsaved)
	return fmt.Errorf("ratelimit: %s: appendonly is no", strings.Join(unsaved, ", "))
}
