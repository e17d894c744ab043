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
	removals := map[string]func() error{
		"removed":  func() error { return os.Remove(path) },
		"replaced": func() error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	}
	for name, removal := range removals {
		t.Run(name, func(t *testing.T) {
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := removal(); err != nil {
				t.Fatal(err)
			}
			if held, err := claim(file, path); held != nil || err != nil {
				t.Errorf("it was claimed (%v, %v)", held, err)
			}
		})
	}
	unlock, err := acquireLock(t.Context(), path)
	if err != nil {
		t.Fatalf("the new file can't be locked: %v", err)
	}
	unlock()
}
