//go:build unix

package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func init() {
	if which := os.Getenv("WIRE_SERVED"); which != "" {
		serveForClients(which)
	}
}

// trivial answers as a provider does, and no more.
func trivial(w http.ResponseWriter, r *http.Request) {
	buffer := buffers.Get().(*[]byte)
	for room := (*buffer)[:cap(*buffer)]; ; {
		if _, err := r.Body.Read(room); err != nil {
			break
		}
	}
	putBuffer(buffer)
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(time.Minute))
	h := w.Header()
	h["X-Request-Id"] = []string{"req_0123456789"}
	if r.URL.Path != "/sse" {
		h["Content-Type"], h["Content-Length"] = []string{"application/json"}, []string{"1024"}
		w.Write(oneKilobyte)
		if r.URL.Path == "/open" {
			control.Flush()
			<-r.Context().Done()
		}
		return
	}
	h["Content-Type"] = []string{"text/event-stream"}
	for range 20 {
		w.Write(oneEvent)
		control.Flush()
	}
}

var (
	oneKilobyte = bytes.Repeat([]byte("y"), 1024)
	oneEvent    = []byte("data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n")
)

// serveForClients is a server in a process of its own. Whenever it reads a line, it reports what it
// has used, in nanoseconds, allocations and bytes.
func serveForClients(which string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	if which == "wire" {
		go (&Server{Handler: http.HandlerFunc(trivial), HeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}).Serve(listener)
	} else {
		go (&http.Server{Handler: http.HandlerFunc(trivial), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}).Serve(listener)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		m := memory()
		fmt.Println(worked(), m.Mallocs, m.TotalAlloc, m.HeapAlloc, m.StackInuse)
	}
	os.Exit(0)
}

// served is such a process.
type served struct {
	addr string
	in   io.WriteCloser
	out  *bufio.Reader
}

func startServed(b *testing.B, which string) *served {
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), "WIRE_SERVED="+which)
	in, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	s := &served{in: in, out: bufio.NewReader(out)}
	b.Cleanup(func() {
		in.Close()
		command.Wait()
	})
	s.addr = strings.TrimSpace(s.line(b))
	return s
}

func (s *served) line(b *testing.B) string {
	line, err := s.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return line
}

// used returns what the process reports that it has used.
func (s *served) used(b *testing.B) (used [5]float64) {
	fmt.Fprintln(s.in)
	for i, word := range strings.Fields(s.line(b)) {
		used[i], _ = strconv.ParseFloat(word, 64)
	}
	return used
}

// BenchmarkServe compares with net/http's server. It reports the server's part alone.
func BenchmarkServe(b *testing.B) {
	for _, path := range []string{"json", "sse"} {
		for _, which := range []string{"wire", "nethttp"} {
			b.Run(path+"/"+which, func(b *testing.B) {
				s := startServed(b, which)
				before := s.used(b)
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) { ask(b, s.addr, "/"+path, pb) })
				after := s.used(b)
				for i, unit := range []string{"server-cpu-ns/op", "server-allocs/op", "server-B/op"} {
					b.ReportMetric((after[i]-before[i])/float64(b.N), unit)
				}
			})
		}
	}
}

// ask sends requests over one connection.
func ask(b *testing.B, addr, path string, pb *testing.PB) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	question := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nAuthorization: Bearer key\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Length: 1024\r\n\r\n%s", path, oneKilobyte)
	answer := bufio.NewReaderSize(c, 16<<10)
	end := []byte("0\r\n\r\n")
	for pb.Next() {
		if _, err := c.Write(question); err != nil {
			b.Error(err)
			return
		}
		for length := -1; ; {
			line, err := answer.ReadSlice('\n')
			if err != nil {
				b.Error(err)
				return
			}
			if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
			}
			if len(line) == 2 && length >= 0 {
				answer.Discard(length)
				break
			}
			if length < 0 && bytes.Equal(line, end[:3]) {
				answer.Discard(2)
				break
			}
		}
	}
}

// BenchmarkConnections measures the memory of a connection in the server: an idle one, and one with
// an open stream.
func BenchmarkConnections(b *testing.B) {
	const conns = 400
	for _, path := range []string{"idle", "open"} {
		for _, which := range []string{"wire", "nethttp"} {
			b.Run(path+"/"+which, func(b *testing.B) {
				s := startServed(b, which)
				before := s.used(b)
				for range conns {
					c, err := net.Dial("tcp", s.addr)
					if err != nil {
						b.Fatal(err)
					}
					defer c.Close()
					fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1024\r\n\r\n%s", path, oneKilobyte)
					if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
						b.Fatal(err)
					}
				}
				time.Sleep(5 * watchAfter)
				after := s.used(b)
				b.ReportMetric((after[3]-before[3])/conns, "heap-B/conn")
				b.ReportMetric((after[4]-before[4])/conns, "stack-B/conn")
			})
		}
	}
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.GC() // empties the pools
	runtime.ReadMemStats(&m)
	return m
}

// worked returns the processor time that the process has used.
func worked() int64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}
