package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// acquireLock acquires an exclusive lock on the data folder and returns its release. The kernel releases the lock when
// the program dies; the file stays.
func acquireLock(ctx context.Context, path string) (func(), error) {
	var file *os.File
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (locked bool, err error) {
		file, err = tryLock(path)
		return file != nil, err
	})
	switch {
	case err == nil:
		return func() { _ = file.Close() }, nil // closing releases the lock
	case ctx.Err() != nil:
		return nil, fmt.Errorf("locking the data folder: another program works on it (%s): %w", path, ctx.Err())
	default:
		return nil, fmt.Errorf("locking the data folder: %w", err)
	}
}

// tryLock returns nil without an error if the lock is held.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return claim(file, path)
}

// claim locks an open file, or closes it and returns nil.
func claim(file *os.File, path string) (*os.File, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, file.Close()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	// If a purge removed the file in the meantime, the lock protects nothing.
	if !isAt(file, path) {
		return nil, file.Close()
	}
	return file, nil
}

func isAt(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}
