package wire

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// The part of a body that the handler has not read is read after the answer, within bounds.
func TestUnreadBody(t *testing.T) {
	for _, c := range []struct {
		name             string
		frame            string
		body             string
		announced, again bool // the answer announces that the connection is closed; the connection is used again
	}{
		{"short", "Content-Length: 5", "hello", false, true},
		{"at the bound", fmt.Sprintf("Content-Length: %d", maxDrain), strings.Repeat("x", maxDrain), false, true},
		{"long", fmt.Sprintf("Content-Length: %d", maxDrain+1), strings.Repeat("x", maxDrain+1), true, false},
		{"short chunks", "Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", false, true},
		{"long chunks", "Transfer-Encoding: chunked", strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 300) + "0\r\n\r\n", false, false},
		{"bad chunks", "Transfer-Encoding: chunked", "x\r\n", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := serving(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			var sent sync.WaitGroup
			defer sent.Wait()
			sent.Go(func() { fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n%s", c.frame, c.body) })
			answers := bufio.NewReader(conn)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil || resp.StatusCode != http.StatusUnauthorized || resp.Close != c.announced {
				t.Fatalf("%+v, %v", resp, err)
			}
			sent.Wait()
			io.WriteString(conn, get)
			resp, err = http.ReadResponse(answers, nil)
			if again := err == nil && resp.StatusCode == http.StatusUnauthorized; again != c.again {
				t.Errorf("%+v, %v", resp, err)
			}
		})
	}
}

// The server sends 100 Continue when the body is first read, and not at all if it is not read.
func TestExpectContinue(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // the statuses
		closes  bool
	}{
		{"it is read", func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != "hello" {
				t.Errorf("%q, %v", body, err)
			}
		}, "100 200", false},
		{"it is not read", func(w http.ResponseWriter, r *http.Request) {}, "200", true},
		{"it is read behind the headers", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			flush(w)
			r.Body.Read(make([]byte, 1))
		}, "200", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := serving(t, c.handler)
			answers := bufio.NewReader(conn)
			io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
			var got []string
			for range strings.Fields(c.want) {
				resp, err := http.ReadResponse(answers, nil)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(resp.StatusCode))
				if resp.StatusCode == http.StatusContinue {
					io.WriteString(conn, "hello")
				} else if resp.Close != c.closes {
					t.Errorf("it closes: %v", resp.Close)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
			if c.closes {
				io.WriteString(conn, "hello")
				if rest, err := io.ReadAll(answers); err != nil || strings.Contains(string(rest), "100") {
					t.Errorf("%q, %v", rest, err)
				}
			}
		})
	}
}

// A body cannot be read after its handler has returned, not even by a Read that is under way.
func TestBodyAfterTheHandler(t *testing.T) {
	errs := make(chan error, 2)
	reading := make(chan struct{})
	conn := serving(t, func(w http.ResponseWriter, r *http.Request) {
		r.Body.Read(make([]byte, 2))
		go func() {
			close(reading)
			_, err := r.Body.Read(make([]byte, 10))
			errs <- err
			_, err = r.Body.Read(make([]byte, 10))
			errs <- err
		}()
		<-reading
	})
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nhi")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%+v, %v", resp, err)
	}
	for range 2 {
		if err := <-errs; err == nil || err == io.EOF {
			t.Error(err)
		}
	}
}

// A body that outlives its handler does not read the bytes of the next request.
func TestBodyOfAnotherRequest(t *testing.T) {
	var first io.Reader
	conn := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if first == nil {
			first = r.Body
			return
		}
		if n, err := first.Read(make([]byte, 10)); n != 0 || err != http.ErrBodyReadAfterClose {
			t.Errorf("%d, %v", n, err)
		}
		if body, err := io.ReadAll(r.Body); string(body) != "there" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	})
	answers := bufio.NewReader(conn)
	for _, body := range []string{"hello", "there"} {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n%s", body)
		if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
	}
}
