package project

// KeptScopes is how many projects a limiter keeps a scope of.
const KeptScopes = scopeShards * mostScopes

// ForgetScopes forgets the scopes of all projects, as if very many others were used.
func (l *Limiter) ForgetScopes() {
	for i := range l.scopes.shards {
		shard := &l.scopes.shards[i]
		shard.mu.Lock()
		for len(shard.byID) > 0 {
			shard.forget()
		}
		shard.mu.Unlock()
	}
}

// Scopes returns of how many projects a scope is kept, and of how many a forgotten one is
// not dropped yet.
func (l *Limiter) Scopes() (kept, forgotten int) {
	for i := range l.scopes.shards {
		shard := &l.scopes.shards[i]
		shard.mu.RLock()
		kept, forgotten = kept+len(shard.byID), forgotten+len(shard.forgotten)
		shard.mu.RUnlock()
	}
	return kept, forgotten
}
