package jobs

import "github.com/machine-iac/machine-iac-operator/actuators/runner"

// Keep has a Runner keep a state.
func Keep(r *Runner, run runner.RunSpec, unsaved []byte) error { return r.kept.keep(run, unsaved) }
