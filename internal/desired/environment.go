package desired

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// EnvironmentReader reads how runs reach the cluster's infrastructure. That is not part of a
// Machine's fingerprint: it affects how, not what, so a change of it requires no new plan.
type EnvironmentReader interface {
	// Environment returns the environment of a run whose module has these variables, and its
	// sensitive values.
	Environment(ctx context.Context, variables []v1alpha1.EnvironmentVariable) (environment map[string]string,
		sensitive []string, err error)
}

// Environment is the part of a run's environment that says how to reach the infrastructure.
type Environment struct {
	Variables map[string]string
	// Sensitive holds its sensitive values.
	Sensitive []string
}

// Environment returns the current environment of a module's run.
func (r *Reader) Environment(ctx context.Context, used *module.Module) (Environment, error) {
	if r.environment == nil {
		return Environment{}, nil
	}
	variables, sensitive, err := r.environment.Environment(ctx, used.Spec().Environment)
	if err != nil {
		return Environment{}, fmt.Errorf("reading how to reach the infrastructure: %w", err)
	}
	return Environment{Variables: variables, Sensitive: sensitive}, nil
}

// clusterFor returns the facts about the cluster for a module that declares the variable. Unlike
// the environment, they are part of the fingerprint, because they determine the instance.
func (r *Reader) clusterFor(ctx context.Context, used *module.Module) (*module.Cluster, error) {
	if r.cluster == nil || used.Variable(module.VariableCluster).Name == "" {
		return nil, nil
	}
	known, err := r.cluster.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's configuration: %w", err)
	}
	return known, nil
}

// With returns the whole environment of a run and its sensitive values. The run's own variables
// take precedence.
func (e Environment) With(variables map[string]string, sensitive []string) (map[string]string, []string) {
	all := map[string]string{}
	maps.Copy(all, e.Variables)
	maps.Copy(all, variables)
	return all, slices.Concat(sensitive, e.Sensitive)
}
