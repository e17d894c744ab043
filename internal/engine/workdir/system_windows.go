package workdir

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// ChildAttributes makes a child lead its own process group.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// KillGroup does nothing: a group cannot be killed once its leader is gone.
func KillGroup(*os.Process) {}

// MakePipe fails: programs cannot open named pipes as files.
func MakePipe(string) error { return errors.ErrUnsupported }

// TryLock locks a file until it is closed, and reports whether no other process holds the lock. The
// kernel releases the lock when the process ends.
func TryLock(file *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
