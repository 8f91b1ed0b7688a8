//go:build !linux

package sqlitestore

import "time"

func nap(d time.Duration) { time.Sleep(d) }
