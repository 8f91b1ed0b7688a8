package control_test

import (
	"context"
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

func Example() {
	board, err := control.Open(nil) // in memory; a gateway gives it the settings of its store
	if err != nil {
		fmt.Println(err)
		return
	}
	defer board.Close()
	err = board.SetProject(context.Background(), "acme", control.Project{Paused: true})
	fmt.Println(board.State().Project("acme").Paused, board.State().Project("initech").Paused, err)
	// Output: true false <nil>
}
