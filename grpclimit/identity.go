package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/grpc/metadata"
)

// MetadataProjectID is the key of the metadata that names a call's project.
const MetadataProjectID = "x-project-id"

var (
	errNoProject   = errors.New("ratelimit: the metadata " + MetadataProjectID + " is missing: it names the project of a call")
	errTwoProjects = errors.New("ratelimit: the metadata " + MetadataProjectID + " is there more than once, with different values: a call has one project")
)

// fromMetadata returns the project that a call names in its metadata.
func fromMetadata(ctx context.Context) (string, error) {
	values := metadata.ValueFromIncomingContext(ctx, MetadataProjectID)
	if len(values) == 0 {
		return "", errNoProject
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", errTwoProjects
		}
	}
	return values[0], nil
}
