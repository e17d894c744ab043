package terraform

import (
	"context"
	"errors"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/batch"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// look is what a share looks at, and what was found.
type look struct {
	hcl, stored []byte
	gone        bool
}

// CheckInstance implements runner.Share.
func (s *share) CheckInstance(ctx context.Context, run runner.RunSpec, hcl, stored []byte) (gone bool, err error) {
	s.run, s.look = run, look{hcl: hcl, stored: stored}
	_, err = s.join(ctx, failure.OpPlan, s.joint.lookAtAll)
	return s.look.gone, err
}

// lookAtAll looks at the instances of all that have come. Where the engine fails nothing is known of any.
func (j *joint) lookAtAll(ctx context.Context) {
	if len(j.come) == 1 {
		one := j.come[0]
		one.look.gone, one.err = j.runner.CheckInstance(ctx, one.run, one.look.hcl, one.look.stored)
		return
	}
	report, err := j.readInstances(ctx)
	for n, one := range j.come {
		if err != nil || len(report.Errors()) > 0 {
			one.err = runner.ErrAlone
			continue
		}
		one.look.gone = batch.PartOf(report, n).InstanceGone()
	}
}

// readInstances has the provider read the instances of all. The resources are in no module that is called: what an engine reads for a resource of its state that is
// not configured any more is the same.
func (j *joint) readInstances(ctx context.Context) (report *engine.Report, err error) {
	var stored [][]byte
	var addresses []string
	for n, one := range j.come {
		stored = append(stored, one.look.stored)
		for _, address := range one.run.Module.InstanceAddresses() {
			addresses = append(addresses, batch.AddressOf(address, n))
		}
	}
	whole, err := batch.State(stored)
	if err != nil {
		return nil, err
	}
	first := j.come[0]
	if err := j.runner.prepare(ctx, first.run); err != nil {
		return nil, err
	}
	opened, err := j.runner.backend.OpenCopy(whole)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	spec := specOf(j.quiet(), backendOf(opened))
	spec.ID, spec.InstanceCheck = first.run.ID+"-checks", first.look.hcl
	workspace, err := j.runner.engine.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workspace.Close()) }()
	return workspace.ReadInstances(ctx, addresses)
}
