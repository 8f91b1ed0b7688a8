package deploy

import (
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// The file of compose is valid; what it mounts exists, and the gateway takes its configuration.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"compose/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway-1", "gateway-2", "redis", "prometheus", "grafana", "provider"} {
		service, err := project.GetService(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, volume := range service.Volumes {
			if _, err := os.Stat(volume.Source); volume.Type == "bind" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if g := project.Services["gateway-1"]; !g.ReadOnly || g.CapDrop[0] != "ALL" {
		t.Error("the gateway has rights that it does not need")
	}
	text, err := os.ReadFile("compose/gateway.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checkFile(t, string(text), "redis://redis:6379/0")
}
