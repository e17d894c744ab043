package offline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// lockInterval is the delay between attempts to take a lock that another process holds.
const lockInterval = 100 * time.Millisecond

// lock locks a file. The kernel releases the lock when the process ends.
func lock(ctx context.Context, name string) (release func(), err error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the module: %w", err)
	}
	again := time.NewTicker(lockInterval)
	defer again.Stop()
	for {
		locked, err := workdir.TryLock(file)
		switch {
		case locked:
			return func() { _ = file.Close() }, nil
		case err != nil:
			return nil, errors.Join(fmt.Errorf("locking the module: %w", err), file.Close())
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for another process that initialises the module: %w",
				context.Cause(ctx)), file.Close())
		}
	}
}
