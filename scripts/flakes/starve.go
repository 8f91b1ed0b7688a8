package main

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// starve takes CPU and disk from everything else on the machine, until the function that it returns is called: two
// loops a core that compute, and one that has a file in a folder written through to the disk.
func starve(folder string) (stop func()) {
	var ended atomic.Bool
	busy := 2 * runtime.NumCPU()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + busy)
	for range busy {
		go func() {
			for n := 0; !ended.Load(); n++ {
			}
		}()
	}
	go func() {
		f, err := os.Create(filepath.Join(folder, "busy"))
		if err != nil {
			return // a disk that is not slow is no reason to stop
		}
		defer f.Close()
		for block := make([]byte, 1<<20); !ended.Load(); {
			if _, err := f.WriteAt(block, 0); err != nil || f.Sync() != nil {
				return
			}
		}
	}()
	return func() { ended.Store(true) }
}
