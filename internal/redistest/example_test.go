package redistest_test

import (
	"fmt"
	"log"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

func Example() {
	s, err := redistest.Start(redistest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.Do("INCR", "key"))
	s.Kill()
	if err := s.Restart(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Do("GET", "key"))
	// Output:
	// 1 <nil>
	// <nil> <nil>
}
