package webhooks

import (
	"errors"
	"fmt"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// The paths of the webhooks.
const (
	MutateMachinePath              = "/mutate-machine-openshift-io-v1beta1-machine"
	MutateMachineSetPath           = "/mutate-machine-openshift-io-v1beta1-machineset"
	ValidateMachinePath            = "/validate-machine-openshift-io-v1beta1-machine"
	ValidateMachineSetPath         = "/validate-machine-openshift-io-v1beta1-machineset"
	MutateMachineDeploymentPath    = "/mutate-machine-openshift-io-v1beta1-machinedeployment"
	ValidateMachineDeploymentPath  = "/validate-machine-openshift-io-v1beta1-machinedeployment"
	ValidateMachineHealthCheckPath = "/validate-machine-openshift-io-v1beta1-machinehealthcheck"
	ReviewAdoptionPath             = "/review-machine-openshift-io-v1beta1-adoption"
	ReviewNamespacePath            = "/review-v1-namespace"
)

// Options configures the webhooks. Catalog and Installation are required.
type Options struct {
	Catalog *module.Catalog
	// Installation signs the grants of adoptions.
	Installation *installation.Installation
	// Self is the manager's own user. If empty, its writes are reviewed like those of others.
	Self string
	// Namespace is the manager's own namespace, which cannot be deleted while it contains Machines;
	// empty to allow it.
	Namespace string
	// ClusterID is the default cluster of Machines, or empty if unknown.
	ClusterID string
	// ClusterValues are the known values of the cluster. Defaults that need others are not applied.
	// ClusterID overrides its value of that name, unless empty.
	ClusterValues module.ClusterValues
	// Cluster reads what modules may know about the cluster; nil for nothing.
	Cluster module.ClusterReader
	// Rights detects missing permissions of credentials; nil to skip.
	Rights *rights.Reader
	// ServedElsewhere reports that another controller serves Machines, so that providerSpecs that no
	// module serves are allowed.
	ServedElsewhere bool
	// Lacking names the providers that a module needs and the manager lacks; nil to skip.
	Lacking func(*module.Module) []string
	// DisabledGates are OpenShift's feature gates whose fields new objects must not set.
	DisabledGates []string
	// References says which Secrets a providerSpec may name; nil allows all.
	References *references.Policy
	// Reader reads Secrets; default is the manager's uncached reader.
	Reader client.Reader
}

// newRules returns the rules with these options. For Machines of another cluster, see
// [render.Complete].
func newRules(options Options) rules {
	cluster := module.ClusterValues{}
	maps.Copy(cluster, options.ClusterValues)
	if options.ClusterID != "" {
		cluster[module.ValueClusterID] = options.ClusterID
	}
	return rules{catalog: options.Catalog, clusterID: options.ClusterID, cluster: cluster, reader: options.Cluster,
		servedElsewhere: options.ServedElsewhere, lacking: options.Lacking, disabledGates: options.DisabledGates,
		held: &render.Held{}}
}

// SetupWithManager registers the webhooks with the manager's webhook server.
func SetupWithManager(mgr manager.Manager, options Options) error {
	if options.Catalog == nil || options.Installation == nil {
		return errors.New("registering webhooks: the options Catalog and Installation are required")
	}
	if options.Reader == nil {
		options.Reader = mgr.GetAPIReader()
	}
	rules := newRules(options)
	secrets := secretChecks{reader: options.Reader, rights: options.Rights, references: options.References,
		reviewer: mgr.GetClient()}
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
	err = builder.WebhookManagedBy(mgr, &v1beta1.MachineDeployment{}).
		WithDefaulter(&machineDeploymentDefaulter{rules: rules}).
		WithDefaulterCustomPath(MutateMachineDeploymentPath).
		WithValidator(&machineDeploymentValidator{sets: machineSetValidator{rules: rules, secrets: secrets}}).
		WithValidatorCustomPath(ValidateMachineDeploymentPath).
		Complete()
	if err != nil {
		return fmt.Errorf("registering the webhooks of MachineDeployments: %w", err)
	}
	check := &unstructured.Unstructured{}
	check.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(healthCheckKind.Kind))
	err = builder.WebhookManagedBy(mgr, check).
		WithValidator(&healthCheckValidator{}).WithValidatorCustomPath(ValidateMachineHealthCheckPath).
		Complete()
	if err != nil {
		return fmt.Errorf("registering the webhook of MachineHealthChecks: %w", err)
	}
	mgr.GetWebhookServer().Register(ReviewAdoptionPath, &admission.Webhook{Handler: &adoptionReview{
		reviewer: mgr.GetClient(), self: options.Self, installation: options.Installation, clock: clock.RealClock{},
	}})
	mgr.GetWebhookServer().Register(ReviewNamespacePath, &admission.Webhook{
		Handler: &namespaceReview{reader: options.Reader, own: options.Namespace},
	})
	return nil
}
