//go:build !unix

package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var errNoSockets = fmt.Errorf("no messages between processes: %w", errors.ErrUnsupported)

type peers struct{ mu sync.Mutex }

func (*peers) close() {}

func (*Store) publish([]byte) error { return errNoSockets }

type inbox struct{}

func (*Store) newInbox() (*inbox, error) { return nil, errNoSockets }

func (*inbox) listen(context.Context, func([]byte)) {}

func (*inbox) close() {}
