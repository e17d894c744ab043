package iac

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// owners notes whose credentials the opened runs have.
type owners struct {
	runner.Runner
	last *atomic.Value
}

func (o owners) Open(ctx context.Context, run runner.RunSpec) (runner.Workspace, error) {
	o.last.Store(run.Credentials)
	return o.Runner.Open(ctx, run)
}

// TestCredentialsBelongToTheirNamespace makes sure that Secrets of one name in two namespaces, such
// as those that OpenShift's operator makes, do not share a warm provider or end each other's.
func TestCredentialsBelongToTheirNamespace(t *testing.T) {
	b := newBench(t)
	b.start(shortdir.New(t), "owner-1")
	var last atomic.Value
	b.runners[v1alpha1.EngineTerraform] = owners{b.runners[v1alpha1.EngineTerraform], &last}
	b.watched()
	b.bring(b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "watched"} }))
	if want := b.namespace + "/watched"; last.Load() != want {
		t.Errorf("the run's credentials are those of %v, want %s", last.Load(), want)
	}
}
