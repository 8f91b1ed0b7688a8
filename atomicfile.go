package ratelimit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// replaceFile puts data in place of the file at path, or of the file that it
// links to, for its owner's eyes only. On an error before the last step the old
// file is as it was; the last step makes the new one outlast a loss of power.
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

// followLinks returns the path of the file that path is or links to, which need
// not exist.
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

// writeTemporary writes data to a new file in dir, down to the disk, and
// returns the file's path. On an error it leaves none.
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

// syncDir writes a directory's entries down to the disk, where the system can.
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
