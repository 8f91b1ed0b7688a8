package grpclimit

import (
	"errors"

	"google.golang.org/grpc/metadata"

	"dappco.re/go/core/go-ratelimit/internal/admit"
)

// MetadataProjectID is the key of the metadata that names a call's project.
const MetadataProjectID = "x-project-id"

var (
	errNoProject   = errors.New("ratelimit: the metadata " + MetadataProjectID + " is missing: it names the project of a call")
	errTwoProjects = errors.New("ratelimit: the metadata " + MetadataProjectID + " is there more than once, with different values: a call has one project")
)

// fromMetadata returns the project in a call's metadata.
func fromMetadata(rpc RPC) (string, error) {
	return admit.Single(metadata.ValueFromIncomingContext(rpc.Context, MetadataProjectID), errNoProject, errTwoProjects)
}
