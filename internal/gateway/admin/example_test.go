package admin_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

func Example() {
	cfg, err := config.Parse("gateway.yaml", []byte("{state: memory, projects: {search: {requests_per_minute: 60}}}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	api, err := admin.New(g, admin.Options{Version: "v1.0.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(api) // ratelimit serve listens on admin.listen
	defer server.Close()

	client := &admin.Client{Base: server.URL, HTTP: server.Client()}
	state, err := client.State(context.Background())
	fmt.Println(state.Version, state.Store, state.Projects[0].ID, state.Projects[0].Windows[0].Remaining, err)
	key, err := client.CreateKey(context.Background(), admin.NewKey{Project: "search", Name: "indexer"})
	fmt.Println(key.Project, key.Name, strings.HasPrefix(key.Secret, "rl-"+key.ID+"-"), err)
	// Output:
	// v1.0.0 memory search 60 <nil>
	// search indexer true <nil>
}
