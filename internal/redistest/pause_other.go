//go:build !unix

package redistest

// Redis does not run here, so there is nothing to pause.
func (p *process) pause()  {}
func (p *process) resume() {}
