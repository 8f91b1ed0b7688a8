// Package bustest is the test that every [bus.Bus] passes.
package bustest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/bus"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// Node is one of the stores that share a place.
type Node interface {
	bus.Bus
	Close() error
}

// Connect returns one more node at the same place, until the test ends.
type Connect func() Node

// Run tests buses. place returns how to connect to a place where nobody else is.
func Run(t *testing.T, place func(t *testing.T) Connect) {
	for name, test := range map[string]func(*testing.T, Connect){
		"others":      others,
		"subscribers": subscribers,
		"nobody":      nobody,
		"content":     content,
		"order":       order,
		"flood":       flood,
		"slow":        slow,
		"unsubscribe": unsubscribe,
		"closed":      closed,
		"cancelled":   cancelled,
		"churn":       churn,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

// Subscribe returns the messages that a node receives.
func Subscribe(t testing.TB, b bus.Bus) <-chan string {
	t.Helper()
	messages := make(chan string, 10_000)
	unsubscribe, err := b.Subscribe(func(message []byte) { messages <- string(message) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unsubscribe)
	return messages
}

// Publish sends a message.
func Publish(t testing.TB, b bus.Bus, message string) {
	t.Helper()
	if err := b.Publish(t.Context(), []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// Want waits for the next message.
func Want(t testing.TB, messages <-chan string, want string) {
	t.Helper()
	select {
	case got := <-messages:
		if got != want {
			t.Fatalf("received %.80q; want %.80q", got, want)
		}
	case <-time.After(testkit.Patience):
		t.Fatalf("%.80q does not arrive", want)
	}
}

// A message arrives at all others once, and not at its sender.
func others(t *testing.T, connect Connect) {
	var nodes []Node
	var received []<-chan string
	for range 4 {
		node := connect()
		nodes, received = append(nodes, node), append(received, Subscribe(t, node))
	}
	for round := range 3 {
		for sender, node := range nodes {
			text := fmt.Sprint("round ", round, ", sender ", sender)
			Publish(t, node, text)
			for receiver := range nodes {
				if receiver != sender {
					Want(t, received[receiver], text)
				}
			}
		}
	}
}

// All subscribers of a node receive what others publish, and none what the node itself does.
func subscribers(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	one, two := Subscribe(t, a), Subscribe(t, a)
	Publish(t, a, "own")
	Publish(t, b, "other")
	Want(t, one, "other")
	Want(t, two, "other")
}

func nobody(t *testing.T, connect Connect) {
	Publish(t, connect(), "nobody is there")
}

func content(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	received := Subscribe(t, b)
	for _, message := range []string{"", "x", "\x00\r\n\xff", strings.Repeat("\x00", bus.MaxMessage)} {
		Publish(t, a, message)
		Want(t, received, message)
	}
	err := a.Publish(t.Context(), make([]byte, bus.MaxMessage+1))
	if err == nil || err.Error() != "ratelimit: a message of 32769 bytes: it may have at most 32768" {
		t.Errorf("too large: %v", err)
	}
	Publish(t, a, "next")
	Want(t, received, "next")
}

// Messages of one sender arrive in order, whoever else publishes.
func order(t *testing.T, connect Connect) {
	const senders, each = 3, 200
	receiver := connect()
	received := make(chan [2]int, 100_000)
	unsubscribe, err := receiver.Subscribe(func(message []byte) {
		var of, n int
		fmt.Sscan(string(message), &of, &n)
		received <- [2]int{of, n}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unsubscribe()
	var nodes []Node
	var sending sync.WaitGroup
	for of := range senders {
		node := connect()
		nodes = append(nodes, node)
		sending.Go(func() {
			for n := range each {
				if err := node.Publish(context.Background(), fmt.Append(nil, of, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	n, next := each, map[int]int{} // the lowest number of each sender that may come
	testkit.Eventually(t, "a message of each sender", func() bool {
		for of, node := range nodes {
			Publish(t, node, fmt.Sprint(of, n))
		}
		n++
		for len(received) > 0 {
			m := <-received
			if m[1] < next[m[0]] {
				t.Errorf("message %d of sender %d comes after %d", m[1], m[0], next[m[0]]-1)
			}
			next[m[0]] = m[1] + 1
		}
		return len(next) == senders
	})
}

// Many messages at once block nobody, and what comes after them arrives.
func flood(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	received := Subscribe(t, b)
	var sending sync.WaitGroup
	for range 8 {
		sending.Go(func() {
			for range 250 {
				a.Publish(context.Background(), bytes.Repeat([]byte("x"), 1000))
			}
		})
	}
	sending.Wait()
	testkit.Eventually(t, "a message after the flood", func() bool {
		Publish(t, a, "last")
		for len(received) > 0 {
			if <-received == "last" {
				return true
			}
		}
		return false
	})
}

// A subscriber that does not return holds up neither the publisher nor other subscribers.
func slow(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	begun, release := make(chan struct{}, 10_000), make(chan struct{})
	unsubscribe, err := b.Subscribe(func([]byte) {
		begun <- struct{}{}
		<-release
	})
	if err != nil {
		t.Fatal(err)
	}
	received := Subscribe(t, b)
	for range 1000 {
		Publish(t, a, "x")
	}
	<-begun
	testkit.Eventually(t, "a message beside the slow subscriber", func() bool {
		Publish(t, a, "y")
		for len(received) > 0 {
			if <-received == "y" {
				return true
			}
		}
		return false
	})
	if len(begun) > 0 {
		t.Error("a subscriber is called with two messages at a time")
	}
	close(release)
	unsubscribe()
}

func unsubscribe(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	stopped := false
	begun := make(chan struct{}, 10)
	unsubscribe, err := b.Subscribe(func([]byte) {
		if stopped {
			t.Error("called after unsubscribe has returned")
		}
		begun <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	Publish(t, a, "1")
	<-begun
	unsubscribe()
	stopped = true
	received := Subscribe(t, b)
	Publish(t, a, "2")
	for <-received != "2" { // a new subscription may receive an earlier message
	}
	unsubscribe()
}

// Closing a node ends its subscriptions. The others go on.
func closed(t *testing.T, connect Connect) {
	a, b, c := connect(), connect(), connect()
	ended := false
	begun := make(chan struct{}, 10)
	unsubscribe, err := b.Subscribe(func([]byte) {
		if ended {
			t.Error("called after the node is closed")
		}
		begun <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	received := Subscribe(t, c)
	Publish(t, a, "1")
	<-begun
	Want(t, received, "1")
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	ended = true
	Publish(t, a, "2")
	Want(t, received, "2")
	if err := b.Publish(t.Context(), []byte("x")); !isClosed(err) {
		t.Errorf("publish: %v", err)
	}
	if _, err := b.Subscribe(func([]byte) {}); !isClosed(err) {
		t.Errorf("subscribe: %v", err)
	}
	unsubscribe()
	b.Close()
}

// isClosed reports whether an error is the one of a closed store. This package stands below stores.
func isClosed(err error) bool { return err != nil && err.Error() == "ratelimit: the store is closed" }

func cancelled(t *testing.T, connect Connect) {
	a, b := connect(), connect()
	received := Subscribe(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Publish(ctx, []byte("x")); err == nil || !strings.HasPrefix(err.Error(), "ratelimit: ") {
		t.Errorf("cancelled: %v", err)
	}
	Publish(t, a, "y")
	Want(t, received, "y")
}

// Nodes come and go while others publish.
func churn(t *testing.T, connect Connect) {
	stop := make(chan struct{})
	var publishing, coming sync.WaitGroup
	for range 2 {
		node := connect()
		publishing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := node.Publish(context.Background(), []byte("x")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 4 {
		coming.Go(func() {
			for range 10 {
				node := connect()
				received := make(chan struct{}, 1)
				_, err := node.Subscribe(func([]byte) {
					select {
					case received <- struct{}{}:
					default:
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-received:
				case <-time.After(testkit.Patience):
					t.Error("a node that has just come receives nothing")
				}
				node.Close()
			}
		})
	}
	coming.Wait()
	close(stop)
	publishing.Wait()
}

// Benchmark reports how long a message takes from one node to another.
func Benchmark(b *testing.B, connect Connect) {
	publisher, subscriber := connect(), connect()
	received := make(chan time.Time, 1)
	unsubscribe, err := subscriber.Subscribe(func([]byte) { received <- time.Now() })
	if err != nil {
		b.Fatal(err)
	}
	defer unsubscribe()
	message := make([]byte, 100)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := publisher.Publish(b.Context(), message); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-received).Sub(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
