package wire

// Buffered returns how many bytes have come of a body of which nothing was read yet,
// with what frames them. It is how a proxy knows whether to send the headers before.
func (e *exchange) Buffered() int {
	if e.state.Load() != open { // the connection may be another's by now
		return 0
	}
	return e.conn.reader.Buffered()
}
