package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// blindNote tells whose rights do not reach as far as the manager's.
const blindNote = "you may not read how the cluster reaches its infrastructure, so that your own proxies and authorities are used; " +
	"docs/kubectl-machine.md lists the rights that each command needs"

// surroundings are how runs of the operator reach the infrastructure: as the manager was told by --engine-env, and as the cluster says.
// The user's own proxies and authorities stand in for what neither names.
type surroundings struct {
	// cluster is nil where the user may not read what it says.
	cluster *config.Reader
	// facts are what the cluster tells for defaults of providerSpecs.
	facts      module.ClusterValues
	given, own map[string]string
	// dir has the file with the authorities.
	dir string
}

// newSurroundings reads what the cluster says. The caller closes what is answered.
func newSurroundings(ctx context.Context, cluster client.Reader, given map[string]string) (s *surroundings, err error) {
	s = &surroundings{given: given, own: ownAccess()}
	if s.dir, err = os.MkdirTemp("", "authorities"); err != nil {
		return nil, fmt.Errorf("making a folder for certificate authorities: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	reader, err := config.New(config.Options{Client: cluster, Dir: s.dir, Given: slices.Collect(maps.Keys(given))})
	if err != nil {
		return nil, err
	}
	settings, err := reader.Settings(ctx)
	switch {
	case inspect.Denied(err):
		return s, nil
	case err != nil:
		return nil, err
	}
	s.cluster, s.facts = reader, settings.ClusterValues
	return s, nil
}

// Close removes the file with the authorities.
func (s *surroundings) Close() error { return os.RemoveAll(s.dir) }

// Environment answers what providers see of the surroundings, given the variables of their module, and what of it must not be shown.
func (s *surroundings) Environment(ctx context.Context, variables []v1alpha1.EnvironmentVariable) (map[string]string, []string, error) {
	said := map[string]string{}
	var sensitive []string
	if s.cluster != nil {
		var err error
		if said, sensitive, err = s.cluster.Environment(ctx, variables); err != nil {
			return nil, nil, err
		}
	}
	maps.Copy(said, s.given)
	environment := s.standIns(said)
	maps.Copy(environment, said)
	return environment, sensitive, nil
}

// standIns answers the user's own variables for what is not said. Proxies are taken together or not at all: exceptions that were made
// for one proxy may be wrong for another.
func (s *surroundings) standIns(said map[string]string) map[string]string {
	own := maps.Clone(s.own)
	if slices.ContainsFunc(slices.Collect(maps.Keys(said)), isProxy) {
		maps.DeleteFunc(own, func(name, _ string) bool { return isProxy(name) })
	}
	return own
}

func isProxy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_proxy") }

// ownAccess is what of the user's environment tells how to reach anything.
func ownAccess() map[string]string {
	environment := map[string]string{}
	for _, name := range usersVariables {
		if value, set := os.LookupEnv(name); set && (isProxy(name) || strings.HasPrefix(name, "SSL_")) {
			environment[name] = value
		}
	}
	return environment
}
