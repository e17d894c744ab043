package jobs

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
)

// Keep has a Runner keep a state.
func Keep(r *Runner, run runner.RunSpec, unsaved []byte) error { return r.kept.keep(run, unsaved) }

// InQueue returns where a Job waits.
func InQueue(ctx context.Context, with client.Client, job *batchv1.Job) string {
	return (&begun{runner: &Runner{options: Options{Client: with}}, job: job}).inQueue(ctx)
}
