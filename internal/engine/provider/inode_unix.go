//go:build unix

package provider

import (
	"fmt"
	"io/fs"
	"syscall"
)

// inode returns the identity of a file under all of its names.
func inode(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d", stat.Dev, stat.Ino)
}
