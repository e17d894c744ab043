package webhooks

import (
	"errors"
	"fmt"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// The paths that the webhooks are served at.
const (
	MutateMachinePath              = "/mutate-machine-openshift-io-v1beta1-machine"
	MutateMachineSetPath           = "/mutate-machine-openshift-io-v1beta1-machineset"
	ValidateMachinePath            = "/validate-machine-openshift-io-v1beta1-machine"
	ValidateMachineSetPath         = "/validate-machine-openshift-io-v1beta1-machineset"
	ValidateMachineHealthCheckPath = "/validate-machine-openshift-io-v1beta1-machinehealthcheck"
)

// Options are what the webhooks work with. Catalog must be set.
type Options struct {
	// Catalog finds the module that serves a providerSpec.
	Catalog *module.Catalog
	// ClusterID is the cluster that Machines belong to which do not say; empty when it is not known.
	ClusterID string
	// ClusterValues are what is known of the cluster. Defaults that need more are left out. ClusterID is the value of that name, unless it is empty.
	ClusterValues module.ClusterValues
	// Cluster reads what modules may know of the cluster; nil where nothing is known.
	Cluster platform.Reader
	// Rights finds out what credentials certainly may not do; nil for nothing.
	Rights *rights.Reader
	// References says which Secrets a providerSpec may name; all of them when nil.
	References *references.Policy
	// Reader reads the Secrets that a providerSpec names; the manager's reader without a cache when nil.
	Reader client.Reader
}

// newRules returns the rules that the options make. Machines of another cluster name it, see [render.Complete].
func newRules(options Options) rules {
	cluster := module.ClusterValues{}
	maps.Copy(cluster, options.ClusterValues)
	if options.ClusterID != "" {
		cluster[module.ValueClusterID] = options.ClusterID
	}
	return rules{catalog: options.Catalog, clusterID: options.ClusterID, cluster: cluster, reader: options.Cluster, held: &render.Held{}}
}

// SetupWithManager registers the webhooks with the manager's webhook server.
func SetupWithManager(mgr manager.Manager, options Options) error {
	if options.Catalog == nil {
		return errors.New("registering webhooks: Catalog must be set in their options")
	}
	if options.Reader == nil {
		options.Reader = mgr.GetAPIReader()
	}
	rules := newRules(options)
	secrets := secretChecks{reader: options.Reader, rights: options.Rights, references: options.References, reviewer: mgr.GetClient()}
	err := builder.WebhookManagedBy(mgr, &machinev1beta1.Machine{}).
		WithDefaulter(&machineDefaulter{rules: rules}).WithDefaulterCustomPath(MutateMachinePath).
		WithValidator(&machineValidator{rules: rules, secrets: secrets}).WithValidatorCustomPath(ValidateMachinePath).
		Complete()
	if err != nil {
		return fmt.Errorf("registering the webhooks of Machines: %w", err)
	}
	err = builder.WebhookManagedBy(mgr, &machinev1beta1.MachineSet{}).
		WithDefaulter(&machineSetDefaulter{rules: rules}).WithDefaulterCustomPath(MutateMachineSetPath).
		WithValidator(&machineSetValidator{rules: rules, secrets: secrets}).WithValidatorCustomPath(ValidateMachineSetPath).
		Complete()
	if err != nil {
		return fmt.Errorf("registering the webhooks of MachineSets: %w", err)
	}
	check := &unstructured.Unstructured{}
	check.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(healthCheckKind.Kind))
	err = builder.WebhookManagedBy(mgr, check).
		WithValidator(&healthCheckValidator{}).WithValidatorCustomPath(ValidateMachineHealthCheckPath).
		Complete()
	if err != nil {
		return fmt.Errorf("registering the webhook of MachineHealthChecks: %w", err)
	}
	return nil
}
