package stub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is how long the path of a Unix socket may be. Plugins name theirs like that.
const (
	maxSocketPath = 103
	socketName    = "plugin1234567890"
)

// MakeScratch makes a folder that is private to this process, with a path that is short enough for sockets in it.
func MakeScratch() (string, error) {
	scratch, err := os.MkdirTemp("", "plan")
	if err == nil {
		scratch, err = filepath.EvalSymlinks(scratch)
	}
	if err != nil {
		return "", fmt.Errorf("making a folder to plan in: %w", err)
	}
	if longest := len(filepath.Join(scratch, "99999", socketName)); longest > maxSocketPath {
		err := fmt.Errorf("the temporary folder's path %s is %d characters too long for sockets in it; set TMPDIR to a shorter one",
			filepath.Dir(scratch), longest-maxSocketPath)
		return "", errors.Join(err, os.RemoveAll(scratch))
	}
	return scratch, nil
}
