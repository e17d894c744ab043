package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/machine-iac/machine-iac-operator/internal/engine/memory"
)

// kernelShare is the fraction of a container's limit reserved for the kernel: page tables, sockets,
// page cache of programs.
const kernelShare = 10

// checkMemory determines the memory limit of the manager and its engines from the flag or the
// container; zero for none. An unreadable container limit is not an error.
func (o *options) checkMemory(ofContainer func() (uint64, error)) error {
	if o.memoryLimit == "" {
		found, err := ofContainer()
		switch {
		case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup),
			errors.Is(err, memlimit.ErrCgroupsNotSupported):
			return nil
		case err != nil:
			o.memoryUnknown = err
			return nil
		}
		o.memoryBytes = int64(found - found/kernelShare) //nolint:gosec // no machine has more
		return nil
	}
	limit, err := resource.ParseQuantity(o.memoryLimit)
	if err != nil || limit.Sign() < 0 {
		return fmt.Errorf("invalid --memory-limit %q; use a quantity such as 512Mi or 2Gi, or 0 for none", o.memoryLimit)
	}
	o.memoryBytes = limit.Value()
	return nil
}

// warmShare bounds the memory of an engine's idle providers to a quarter of the limit for all
// engines, so that runs have room. If Pulumi has plugins, two engines share it.
func (o *options) warmShare() int64 {
	share := o.warmMemory.Value()
	if o.memoryBytes > 0 {
		share = min(share, o.memoryBytes/4)
	}
	if o.pulumiPlugins != "" {
		share /= 2
	}
	return max(share, 1)
}

// newBudget returns the memory budget of runs.
func newBudget(o options) (*memory.Budget, error) {
	dir, err := filepath.Abs(o.workDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the work folder: %w", err)
	}
	if o.memoryUnknown != nil {
		ctrl.Log.Info("Not limiting runs by memory: the container's memory limit is unknown; set --memory-limit, 0 for none",
			"reason", o.memoryUnknown.Error())
	}
	if o.jobs.place == inJobs {
		o.memoryBytes = 0 // the cluster schedules runs by memory
	}
	if o.memoryBytes > 0 {
		ctrl.Log.Info("Limiting runs by memory", "limit", o.memoryBytes)
	}
	budget := memory.New(memory.Options{Limit: o.memoryBytes, Dir: dir, Logger: ctrl.Log.WithName("memory")})
	return budget, metrics.Registry.Register(budget)
}
