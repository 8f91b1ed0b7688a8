package statefile

import (
	"fmt"
	"os"
	"runtime"
)

// CheckMode returns an error if others than the owner of a file may write to it: whoever can change what is counted can
// lift every limit. A file that cannot be looked at, or does not exist yet, is no error here.
func CheckMode(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o022 == 0 {
		return nil
	}
	return fmt.Errorf("ratelimit: %s has the mode %04o, so others than its owner may change every limit in it: chmod 600", path, info.Mode().Perm())
}
