package terraform

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// CheckInstance implements runner.InstanceChecker.
func (r *Runner) CheckInstance(ctx context.Context, run runner.RunSpec, stored []byte) (gone bool, err error) {
	run.ID += "-check"
	report, err := r.readInstances(ctx, run, stored, run.Module.InstanceAddresses())
	return err == nil && report.InstanceGone(), err
}

// readInstances makes the provider read the instances in a state, and nothing else of it.
func (r *Runner) readInstances(ctx context.Context, run runner.RunSpec, stored []byte,
	addresses []string) (report *engine.Report, err error) {
	if err := r.prepare(ctx, run); err != nil {
		return nil, err
	}
	opened, err := r.backend.OpenCopy(stored)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	spec := specOf(run, backendOf(opened))
	spec.Bare = bareOf(run)
	workspace, err := r.engine.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	return workspace.ReadInstances(ctx, addresses)
}

// look is the input and result of a share's look.
type look struct {
	stored []byte
	gone   bool
}

// CheckInstance implements runner.Share.
func (s *share) CheckInstance(ctx context.Context, run runner.RunSpec, stored []byte) (gone bool, err error) {
	s.run, s.look = run, look{stored: stored}
	_, err = s.join(ctx, failure.OpPlan, s.joint.lookAtAll)
	return s.look.gone, err
}

// lookAtAll checks the instances of all arrived runs. If the engine fails, nothing is known about
// any.
func (j *joint) lookAtAll(ctx context.Context) {
	if len(j.come) == 1 {
		one := j.come[0]
		one.look.gone, one.err = j.runner.CheckInstance(ctx, one.run, one.look.stored)
		return
	}
	report, err := j.readInstances(ctx)
	for n, one := range j.come {
		if err != nil || len(report.Errors()) > 0 {
			one.err = runner.ErrAlone
			continue
		}
		one.look.gone = j.layout.PartOf(report, n).InstanceGone()
	}
}

// readInstances makes the provider read all instances. Their resources are not in the called
// modules: an engine reads a resource that is no longer configured in the same way.
func (j *joint) readInstances(ctx context.Context) (*engine.Report, error) {
	j.layout = batch.Together(len(j.come))
	var stored [][]byte
	var addresses []string
	for n, one := range j.come {
		stored = append(stored, one.look.stored)
		for _, address := range one.run.Module.InstanceAddresses() {
			addresses = append(addresses, j.layout.AddressOf(address, n))
		}
	}
	whole, err := j.layout.State(stored)
	if err != nil {
		return nil, err
	}
	all := j.quiet()
	all.ID += "-checks"
	return j.runner.readInstances(ctx, all, whole, addresses)
}
