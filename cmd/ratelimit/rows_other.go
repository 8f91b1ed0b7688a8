//go:build !unix

package main

import "os"

// rowsOf returns how many rows a terminal has: 0, which is that nobody knows.
func rowsOf(*os.File) int { return 0 }
