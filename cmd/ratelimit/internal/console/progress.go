package console

import (
	"fmt"
	"io"
	"time"
)

// soon is how long something may take before its progress is shown.
const soon = time.Second

// Progress shows on a terminal, in one line that is removed at the end, what takes long: from one
// second on, and then every second. Call the function that it returns at the end.
func (w *Writer) Progress(what string) (end func()) {
	if !w.Terminal() {
		return func() {}
	}
	return w.progress(what)
}

func (w *Writer) progress(what string) (end func()) {
	stop, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(soon)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					io.WriteString(w.to, "\r\x1b[K") // removes the line
				}
				return
			case <-tick.C:
				shown = true
				io.WriteString(w.to, "\r\x1b[K"+w.shown(fmt.Sprintf("%s (%.0f s)", what, time.Since(began).Seconds())))
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}
