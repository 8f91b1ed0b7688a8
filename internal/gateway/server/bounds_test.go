package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHeaderBomb(t *testing.T) {
	r := start(t, mock(), strings.Replace(basic, "drain: 20s", "drain: 20s, max_header: 8KiB", 1))
	c := r.half(t)
	if _, err := fmt.Fprintf(c, "X-More: %s\r\n\r\n", strings.Repeat("x", 20<<10)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("it gets %+v, %v", resp, err)
	}
}

// A client that sends its headers too slowly is cut off.
func TestSlowHeaders(t *testing.T) {
	r := start(t, mock(), strings.Replace(basic, "drain: 20s", "drain: 20s, header_timeout: 1s", 1))
	c := r.half(t)
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("it is not cut off: %v", err)
	}
}

// A panic ends only its own request, and the log does not have the panic's text.
func TestPanicIsIsolated(t *testing.T) {
	log := new(logged)
	handler := isolated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("the key is sk-secret")
		case "/fault":
			fmt.Fprint(w, []int{}[len(r.URL.Path)])
		case "/abort":
			panic(http.ErrAbortHandler)
		}
	}), slog.New(slog.NewJSONHandler(log, nil)))
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = slog.NewLogLogger(slog.NewJSONHandler(log, nil), slog.LevelWarn)
	s.Start()
	defer s.Close()
	for _, c := range []struct {
		path, logged string
		fine         bool
	}{
		{"/panic", `"panic":"string"`, false}, {"/", "", true},
		{"/fault", "index out of range", false}, {"/", "", true},
		{"/abort", "", false}, {"/", "", true},
	} {
		before := len(log.String())
		resp, err := http.Get(s.URL + c.path)
		if err == nil {
			resp.Body.Close()
		}
		if fine := err == nil; fine != c.fine {
			t.Errorf("%s: %v", c.path, err)
		}
		said := log.String()[before:]
		if !strings.Contains(said, c.logged) || (c.logged == "") != (said == "") || strings.Contains(said, "sk-secret") {
			t.Errorf("%s: the log says %q", c.path, said)
		}
	}
}
