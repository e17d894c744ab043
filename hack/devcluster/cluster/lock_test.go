package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLockIsHeldByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := acquireLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := acquireLock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second one got the lock, or another error: %v", err)
	}
	time.AfterFunc(100*time.Millisecond, unlock)
	again, err := acquireLock(t.Context(), path)
	if err != nil {
		t.Fatalf("nobody holds it any more: %v", err)
	}
	again()
}

func TestLockOnARemovedFileIsWorthNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := acquireLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again, err := acquireLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer again()
	file, err := tryLock(path)
	if err != nil || file != nil {
		t.Errorf("the new file is not locked (%v, %v)", file, err)
	}
}
