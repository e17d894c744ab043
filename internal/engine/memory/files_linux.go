package memory

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// filesInMemory returns how much memory the file system of a folder uses: zero if it is on a disk.
func filesInMemory(dir string) (int64, error) {
	var of unix.Statfs_t
	if err := unix.Statfs(dir, &of); err != nil {
		return 0, fmt.Errorf("reading the file system of %s: %w", dir, err)
	}
	if of.Type != unix.TMPFS_MAGIC {
		return 0, nil
	}
	return int64(of.Blocks-of.Bfree) * of.Bsize, nil //nolint:gosec // no file system has more blocks
}
