package desired

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
)

// EnvironmentReader reads what runs need to know of the cluster that Machines belong to: how its infrastructure is reached. That is no part of
// a Machine's fingerprint: it says how something is done, not what, so a change of it is no reason to plan anything anew.
type EnvironmentReader interface {
	// Environment returns the environment of a run whose module has these variables, and what of it must not be shown.
	Environment(ctx context.Context, variables []v1alpha1.EnvironmentVariable) (environment map[string]string, sensitive []string, err error)
}

// Environment is the part of a run's environment that says how the infrastructure is reached.
type Environment struct {
	Variables map[string]string
	// Sensitive is what of it must not be shown.
	Sensitive []string
}

// Environment returns the environment of a run of a module now.
func (r *Reader) Environment(ctx context.Context, used *module.Module) (Environment, error) {
	if r.environment == nil {
		return Environment{}, nil
	}
	variables, sensitive, err := r.environment.Environment(ctx, used.Spec().Environment)
	if err != nil {
		return Environment{}, fmt.Errorf("finding out how the infrastructure is reached: %w", err)
	}
	return Environment{Variables: variables, Sensitive: sensitive}, nil
}

// clusterFor returns what is known of the cluster, for a module that declares the variable. Unlike the environment, that is a part of the
// fingerprint: it says what an instance is.
func (r *Reader) clusterFor(ctx context.Context, used *module.Module) (*platform.Cluster, error) {
	if r.cluster == nil || used.Variable(module.VariableCluster).Name == "" {
		return nil, nil
	}
	known, err := r.cluster.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading what is known of the cluster: %w", err)
	}
	return known, nil
}

// With returns the whole environment of a run, and what of it must not be shown. The run's own variables win.
func (e Environment) With(variables map[string]string, sensitive []string) (map[string]string, []string) {
	all := map[string]string{}
	maps.Copy(all, e.Variables)
	maps.Copy(all, variables)
	return all, slices.Concat(sensitive, e.Sensitive)
}
