package webhook

import (
	"net/http"
	"time"
)

// Hasten lets the sender try again soon.
func (s *Sender) Hasten() { s.first = time.Millisecond }

// Through lets the sender send through a transport.
func (s *Sender) Through(t http.RoundTripper) { s.client.Transport = t }
