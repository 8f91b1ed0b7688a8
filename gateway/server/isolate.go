package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
)

// isolated returns a handler whose panics end their own request alone. The log has
// what kind of panic it was and where, but not what it says: that may be of the
// request.
func isolated(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler {
				log.Error("a request has panicked", "panic", kind(v), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// kind says what a panic is, without what it may tell of a request.
func kind(v any) string {
	if fault, ok := v.(runtime.Error); ok {
		return fault.Error()
	}
	return fmt.Sprintf("%T", v)
}
