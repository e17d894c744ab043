package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/cmd/kubectl-machine/cli"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/config"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// noClusterConfigNote is for users with fewer rights than the manager.
const noClusterConfigNote = "you may not read how the cluster reaches its infrastructure, so that your own proxies and authorities are used; " +
	"docs/kubectl-machine.md lists the rights that each command needs"

// runEnvironment is how the operator's runs reach the infrastructure: through the manager's
// --engine-env and the cluster's configuration. The user's own proxies and CAs apply if neither
// sets them.
type runEnvironment struct {
	// cluster is nil if the user may not read the cluster's configuration.
	cluster *config.Reader
	// clusterValues are for defaults of providerSpecs.
	clusterValues module.ClusterValues
	// known are the facts about the cluster for modules; nil if the user may not read them.
	known      *module.Cluster
	given, own map[string]string
	// dir has the file with the authorities.
	dir string
}

// newRunEnvironment reads the cluster's configuration. The caller closes the result.
func newRunEnvironment(ctx context.Context, cluster client.Reader, namespace string,
	given map[string]string) (s *runEnvironment, err error) {
	s = &runEnvironment{given: given, own: ownAccess()}
	if s.dir, err = os.MkdirTemp("", "authorities"); err != nil {
		return nil, fmt.Errorf("making a folder for certificate authorities: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	options := config.Options{Client: cluster, Dir: s.dir, Given: slices.Collect(maps.Keys(given))}
	own, err := installation.Read(ctx, cluster, namespace)
	switch {
	case err == nil:
		options.Installation = string(own.UID())
	case !inspect.Denied(err) && !apierrors.IsNotFound(err):
		return nil, err
	}
	reader, err := config.New(options)
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
	s.cluster, s.clusterValues, s.known = reader, settings.ClusterValues, settings.Cluster
	return s, nil
}

// Close removes the file with the authorities.
func (s *runEnvironment) Close() error { return os.RemoveAll(s.dir) }

// Environment returns the environment of providers, given the variables of their module, and its
// sensitive values.
func (s *runEnvironment) Environment(ctx context.Context, variables []v1alpha1.EnvironmentVariable) (map[string]string,
	[]string, error) {
	set := map[string]string{}
	var sensitive []string
	if s.cluster != nil {
		var err error
		if set, sensitive, err = s.cluster.Environment(ctx, variables); err != nil {
			return nil, nil, err
		}
	}
	maps.Copy(set, s.given)
	environment := s.defaults(set)
	maps.Copy(environment, set)
	return environment, sensitive, nil
}

// defaults returns the user's own variables for what is not set. It takes either all or none of the
// proxy variables: exceptions for one proxy may be wrong for another.
func (s *runEnvironment) defaults(set map[string]string) map[string]string {
	own := maps.Clone(s.own)
	if slices.ContainsFunc(slices.Collect(maps.Keys(set)), isProxy) {
		maps.DeleteFunc(own, func(name, _ string) bool { return isProxy(name) })
	}
	return own
}

func isProxy(name string) bool { return strings.HasSuffix(strings.ToLower(name), "_proxy") }

// ownAccess returns the proxies and CAs of the user's environment.
func ownAccess() map[string]string {
	environment := map[string]string{}
	for _, name := range cli.UsersVariables {
		if value, ok := os.LookupEnv(name); ok && (isProxy(name) || strings.HasPrefix(name, "SSL_")) {
			environment[name] = value
		}
	}
	return environment
}
