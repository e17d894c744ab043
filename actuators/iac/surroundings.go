package iac

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// Surroundings tell what runs see of the cluster that Machines belong to: how its infrastructure is reached. They are no part of a
// Machine's fingerprint: they say how something is done, not what, so that a change of them is no reason to plan anything anew.
type Surroundings interface {
	// Environment answers the environment of a run whose module has these variables, and what of it must not be shown.
	Environment(ctx context.Context, variables []v1alpha1.EnvironmentVariable) (environment map[string]string, sensitive []string, err error)
}

// surroundings are those of one run.
type surroundings struct {
	environment map[string]string
	sensitive   []string
}

// look returns what a run of a module sees of the cluster now.
func (r *reader) look(ctx context.Context, used *module.Module) (surroundings, error) {
	if r.around == nil {
		return surroundings{}, nil
	}
	environment, sensitive, err := r.around.Environment(ctx, used.Spec().Environment)
	if err != nil {
		return surroundings{}, fmt.Errorf("finding out how the infrastructure is reached: %w", err)
	}
	return surroundings{environment: environment, sensitive: sensitive}, nil
}

// with answers the environment of a run, and what must not be shown of it. What is the run's own counts more.
func (s surroundings) with(environment map[string]string, sensitive []string) (map[string]string, []string) {
	all := maps.Clone(s.environment)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, environment)
	return all, slices.Concat(sensitive, s.sensitive)
}
