package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// reportUnsaved emits an event if a server has no append-only file, so that it has forgotten everything,
// or much, once it is restarted. A server that does not tell is passed over: managed ones, and those
// whose user may not call INFO.
func (s *Store) reportUnsaved() {
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
		return
	}
	slices.Sort(unsaved)
	s.events.send(Event{Kind: Unsaved, Err: fmt.Errorf("ratelimit: %s: appendonly is no", strings.Join(unsaved, ", "))})
}
