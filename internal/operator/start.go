package operator

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
)

// Start is the part of the cluster's configuration that the operator reads only when it starts.
type Start struct {
	// TLS is what the operator's own server accepts.
	TLS operands.TLS
	// SingleNode is true if the control plane has one node: its API server is unavailable while the
	// node restarts.
	SingleNode bool
}

// ReadStart reads the configuration. All of it is optional.
func ReadStart(ctx context.Context, live client.Client) (Start, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := &Reconciler{live: live}
	var in operands.Inputs
	if err := r.tls(ctx, &in, nil); err != nil {
		return Start{}, err
	}
	found := &configv1.Infrastructure{}
	if _, err := r.read(ctx, client.ObjectKey{Name: clusterName}, found); err != nil {
		return Start{}, err
	}
	return Start{TLS: in.TLS, SingleNode: singleNode(found)}, nil
}

func singleNode(found *configv1.Infrastructure) bool {
	return found.Status.ControlPlaneTopology == configv1.SingleReplicaTopologyMode
}

// Serving returns what restricts a server to this.
func (s Start) Serving() (func(*tls.Config), error) {
	if s.TLS.MinVersion == "" {
		return func(*tls.Config) {}, nil
	}
	lowest, err := cliflag.TLSVersion(s.TLS.MinVersion)
	if err != nil {
		return nil, fmt.Errorf("the TLS profile of the APIServer %s: %w", clusterName, err)
	}
	chosen, err := cliflag.TLSCipherSuites(s.TLS.CipherSuites)
	if err != nil {
		return nil, fmt.Errorf("the TLS profile of the APIServer %s: %w", clusterName, err)
	}
	return func(config *tls.Config) { config.MinVersion, config.CipherSuites = lowest, chosen }, nil
}
