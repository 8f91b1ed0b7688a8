package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
)

// isolated returns a handler whose panics end only their own request. The log has the kind
// of a panic and its stack, but not its text, which may be a part of the request.
func isolated(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v != http.ErrAbortHandler {
				log.Error("a request has panicked", "panic", panicKind(v), "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// panicKind describes a panic without the values in it.
func panicKind(v any) string {
	if fault, ok := v.(runtime.Error); ok {
		return fault.Error()
	}
	return fmt.Sprintf("%T", v)
}
