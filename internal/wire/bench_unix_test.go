//go:build unix

package wire

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// headers are typical of a provider's response.
const headers = "Date: Sun, 15 Nov 2026 18:00:00 GMT\r\nServer: plain\r\nx-request-id: req_0123456789\r\n" +
	"x-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 499\r\nx-ratelimit-reset-requests: 120ms\r\n"

func whole(text string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", headers, len(text), text)
}

// chunks returns an answer of so many chunks.
func chunks(n int) []string {
	parts := []string{"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\n"}
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n"
	for range n {
		parts = append(parts, fmt.Sprintf("%x\r\n%s\r\n", len(event), event))
	}
	return append(parts, "0\r\n\r\n")
}

const questionSize = 1024

// answers are what the server of the benchmarks sends, part by part.
var answers = map[string][]string{"/json": {whole(strings.Repeat("y", 1024))}, "/sse": chunks(20)}

func init() {
	if os.Getenv("WIRE_SERVER") != "" {
		serveForBenchmarks()
	}
}

// serveForBenchmarks is a server in a process of its own, so that this process measures the client
// alone. It reads no more of a request than it must.
func serveForBenchmarks() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	for {
		c, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go answerAll(c)
	}
}

func answerAll(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 16<<10)
	for {
		path := ""
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if path == "" {
				path = strings.Fields(string(line))[1]
			}
			if len(line) == len("\r\n") {
				break
			}
		}
		r.Discard(questionSize)
		for _, part := range answers[path] {
			if _, err := io.WriteString(c, part); err != nil {
				return
			}
		}
	}
}

// serverProcess starts the server, and returns its address.
func serverProcess(b *testing.B) string {
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), "WIRE_SERVER=1")
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line)
}

// BenchmarkRoundTrip compares the Transport with a tuned http.Transport. cpu-ns/op is the processor
// time of the client, in the kernel and in the program.
func BenchmarkRoundTrip(b *testing.B) {
	url := serverProcess(b)
	question := bytes.Repeat([]byte("x"), questionSize)
	for path := range answers {
		b.Run(path[1:]+"/wire", func(b *testing.B) {
			t := &Transport{}
			defer t.CloseIdleConnections()
			drive(b, t, url+path, func(req *http.Request) { req.Body = &Pieces{question} })
		})
		b.Run(path[1:]+"/nethttp", func(b *testing.B) {
			t := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
			defer t.CloseIdleConnections()
			drive(b, t, url+path, func(req *http.Request) { req.Body = io.NopCloser(bytes.NewReader(question)) })
		})
	}
}

// drive sends requests, each with a context of its own, like those of a gateway.
func drive(b *testing.B, t http.RoundTripper, url string, fill func(*http.Request)) {
	plain, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	plain.ContentLength = questionSize
	plain.Header = http.Header{
		"Content-Type": {"application/json"}, "Authorization": {"Bearer key"}, "User-Agent": {"bench"}, "Accept": {"*/*"},
	}
	b.ReportAllocs()
	b.SetParallelism(16)
	before := worked()
	b.RunParallel(func(pb *testing.PB) {
		buffer := make([]byte, 32<<10)
		for pb.Next() {
			if err := once(t, plain, fill, buffer); err != io.EOF {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(worked()-before)/float64(b.N), "cpu-ns/op")
}

// once sends a request, and reads the response to its end.
func once(t http.RoundTripper, plain *http.Request, fill func(*http.Request), buffer []byte) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := plain.WithContext(ctx)
	fill(req)
	response, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for err == nil {
		_, err = response.Body.Read(buffer)
	}
	return err
}

func worked() int64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return used.Utime.Nano() + used.Stime.Nano()
}

// BenchmarkOpenStreams measures the heap of an open stream, which includes the server's small part.
func BenchmarkOpenStreams(b *testing.B) {
	server := startRaw(b, func(c net.Conn) {
		c.Read(make([]byte, 512))
		io.WriteString(c, ok+"Transfer-Encoding: chunked\r\n"+headers+"\r\n2\r\nhi\r\n")
		c.Read(make([]byte, 1))
	})
	const streams = 500
	for b.Loop() {
		transport := newTransport(b, nil)
		before := heap()
		bodies := make([]io.ReadCloser, streams)
		for i := range bodies {
			response, err := transport.RoundTrip(newRequest(b, "POST", server.url, "text"))
			if err != nil {
				b.Fatal(err)
			}
			bodies[i] = response.Body
		}
		b.ReportMetric(float64(heap()-before)/streams, "B/stream")
		for _, body := range bodies {
			body.Close()
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
