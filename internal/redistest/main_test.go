package redistest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

const asChild = "REDISTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		child()
		return
	}
	goleak.VerifyTestMain(m,
		// A client of rueidis leaves these goroutines behind when it is closed, asleep for up to
		// five seconds.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// child starts a server, prints its address, and waits to be killed.
func child() {
	s, err := Start(Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Addr, s.home)
	select {}
}
