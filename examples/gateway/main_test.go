package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestShow(t *testing.T) {
	var out bytes.Buffer
	if err := show(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"200 OK: 3", "429 Too Many Requests: 2", "has 0 of its 3 requests a minute left"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
}
