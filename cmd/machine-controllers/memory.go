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

// kernelShare is the part of a container's limit that is left to the kernel: page tables, sockets, the programs' pages.
const kernelShare = 10

// checkMemory reads the limit of the memory that the manager and its engines may take: that of the flag, or of the container, or zero for none. A
// container's that cannot be read stops nothing.
func (o *options) checkMemory(ofContainer func() (uint64, error)) error {
	if o.memoryLimit == "" {
		found, err := ofContainer()
		switch {
		case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
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
		return fmt.Errorf("--memory-limit is %q; set it to a quantity such as 512Mi or 2Gi, or to 0 for none", o.memoryLimit)
	}
	o.memoryBytes = limit.Value()
	return nil
}

// warmShare returns what the idle providers of an engine may take together: no more than a quarter of a limit for all, so that runs find room beside
// them. Where Pulumi has plugins, two engines share it.
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

// newBudget returns the memory that runs must fit into.
func newBudget(o options) (*memory.Budget, error) {
	dir, err := filepath.Abs(o.workDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the work folder: %w", err)
	}
	if o.memoryUnknown != nil {
		ctrl.Log.Info("The memory limit of the container is not known, so that runs do not wait for memory; set --memory-limit, 0 for none", "reason", o.memoryUnknown.Error())
	}
	if o.jobs.place == inJobs {
		o.memoryBytes = 0 // the cluster knows where there is room
	}
	if o.memoryBytes > 0 {
		ctrl.Log.Info("Runs start while there is memory for them", "limit", o.memoryBytes)
	}
	budget := memory.New(memory.Options{Limit: o.memoryBytes, Dir: dir, Logger: ctrl.Log.WithName("memory")})
	return budget, metrics.Registry.Register(budget)
}
