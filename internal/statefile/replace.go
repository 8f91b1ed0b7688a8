package statefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// replaceFile replaces the file at path, or the file that path links to. Only its owner may read the
// new file. If an error occurs before the last step, the old file is unchanged. The last step makes
// sure that the new file survives a loss of power.
func replaceFile(path string, data []byte) error {
	path, err := followLinks(path)
	if err != nil {
		return err
	}
	dir, _ := filepath.Split(path) // filepath.Dir would resolve .. without looking at links
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := writeTemporary(dir, data)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncDir(dir)
}

// followLinks returns the path of the file that path is or links to. The file need not exist.
func followLinks(path string) (string, error) {
	for at, links := path, 0; links < 40; links++ {
		link, err := os.Readlink(at)
		if err != nil { // not a link
			return at, nil
		}
		if dir, _ := filepath.Split(at); !filepath.IsAbs(link) {
			link = dir + link
		}
		at = link
	}
	return "", fmt.Errorf("%s: too many links, one after another", path)
}

// writeTemporary writes data to a new file in dir, forces it to the disk, and returns the file's path.
// After an error there is no such file.
func writeTemporary(dir string, data []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, ".ratelimit-*.tmp") // mode 0600, O_EXCL
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir forces the entries of a directory to the disk, if the system can do that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
