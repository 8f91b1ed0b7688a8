package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// checkProject returns an error if the gateway does not know a project, with the name that was probably
// meant. A project may have any name, so a misspelled one would be taken for a new project.
func checkProject(ctx context.Context, client *admin.Client, id string) error {
	rows, err := client.OverviewProjects(ctx, id, "name", 0, maxNames)
	if err != nil {
		return err
	}
	for _, row := range rows.Projects {
		if row.Name == id {
			return nil
		}
	}
	return fmt.Errorf("the gateway knows no project %s%s", message.Quote(id), didYouMean(id, projectNames(ctx, client, "")))
}

// maxNames is how many names are looked at for one that was probably meant.
const maxNames = 1000

// suggestModel adds to the error of a request about a model the name that was probably meant, if no model
// has that name.
func suggestModel(ctx context.Context, client *admin.Client, name string, err error) error {
	problem, ok := errors.AsType[*admin.Problem](err)
	if !ok || problem.Status != http.StatusNotFound && problem.Status != http.StatusBadRequest {
		return err
	}
	known := modelNames(ctx, client, "")
	if slices.Contains(known, name) {
		return err
	}
	return unknownModel{fmt.Errorf("%w%s", err, cmp.Or(didYouMean(name, known), ": `ratelimit model list` shows the models"))}
}

// unknownModel is the error of a request about a model that no configuration names.
type unknownModel struct{ error }

func (e unknownModel) Unwrap() error { return e.error }

// didYouMean returns the end of a message, with the nearest of some names; or nothing.
func didYouMean(name string, all []string) string {
	if near := message.Nearest(name, all); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}
