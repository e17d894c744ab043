package offline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path of a Unix socket. Plugins name theirs like the pattern.
const (
	maxSocketPath = 103
	socketName    = "plugin1234567890"
)

// makeScratch creates a private folder with a path that is short enough for sockets.
func makeScratch() (string, error) {
	scratch, err := os.MkdirTemp("", "plan")
	if err == nil {
		scratch, err = filepath.EvalSymlinks(scratch)
	}
	if err != nil {
		return "", fmt.Errorf("making a folder to plan in: %w", err)
	}
	if longest := len(filepath.Join(scratch, "99999", socketName)); longest > maxSocketPath {
		err := fmt.Errorf("the temporary folder's path %s is %d characters too long for sockets in it; set TMPDIR to "+
			"a shorter one",
			filepath.Dir(scratch), longest-maxSocketPath)
		return "", errors.Join(err, os.RemoveAll(scratch))
	}
	return scratch, nil
}
