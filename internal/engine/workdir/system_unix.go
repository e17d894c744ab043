//go:build unix

package workdir

import (
	"errors"
	"os"
	"syscall"
)

// KillGroup kills what is left of the process group of a child with [ChildAttributes].
func KillGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// MakePipe creates a named pipe for this user.
func MakePipe(path string) error { return syscall.Mkfifo(path, 0o600) }

// TryLock locks a file until it is closed, and reports whether no other process holds the lock. The
// kernel releases the lock when the process ends.
func TryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}
