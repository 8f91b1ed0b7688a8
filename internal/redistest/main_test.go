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
	goleak.VerifyTestMain(m)
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
