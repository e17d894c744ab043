// Package shortdir creates folders for sockets, whose paths are limited in length. testing.T.TempDir includes the
// test's name.
package shortdir

import (
	"os"
	"path/filepath"
	"testing"
)

// New returns a new folder, about ten characters longer than TMPDIR and free of symbolic links. It is removed when the
// test ends.
func New(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
