//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// rowsOf returns how many rows a terminal has, or 0 if that is unknown.
func rowsOf(terminal *os.File) int {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}
