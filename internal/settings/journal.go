package settings

import "context"

// Journal is a store that also keeps the last lines of a log, which all nodes that share it see.
type Journal interface {
	// AppendLine appends a line to the log with a name, and forgets the oldest of more than most lines.
	AppendLine(ctx context.Context, name, line string, most int) error

	// Lines returns the lines of a log, oldest first.
	Lines(ctx context.Context, name string) ([]string, error)
}
