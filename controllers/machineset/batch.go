package machineset

import (
	"context"
	"fmt"
	"sync"
)

// slowStart calls do total times, in parallel batches of 1, 2, 4 and so on up to limit. It stops
// after the first batch with an error, so that a MachineSet whose Machines are refused causes few
// requests.
func slowStart(ctx context.Context, total, limit int, do func(context.Context, int) error) error {
	for done, size := 0, 1; done < total; size = min(2*size, limit) {
		if err := ctx.Err(); err != nil {
			return err
		}
		batch := min(size, total-done)
		if err := parallel(ctx, batch, batch, func(ctx context.Context, i int) error { return do(ctx, done+i) }); err != nil {
			return err
		}
		done += batch
	}
	return nil
}

// parallel calls do total times, at most limit at once, and waits for all. It returns the first
// error and how many more there are.
func parallel(ctx context.Context, total, limit int, do func(context.Context, int) error) error {
	var (
		group  sync.WaitGroup
		errs   = make([]error, total)
		tokens = make(chan struct{}, limit)
	)
	for i := range total {
		tokens <- struct{}{}
		group.Go(func() {
			defer func() { <-tokens }()
			errs[i] = do(ctx, i)
		})
	}
	group.Wait()
	return firstOf(errs)
}

// firstOf returns the first error, and how many more there are.
func firstOf(errs []error) error {
	var first error
	failed := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		failed++
		if first == nil {
			first = err
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more failed)", first, failed-1)
	}
	return first
}
