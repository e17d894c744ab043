package desired

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Options configures a Reader. All are required unless a default is named.
type Options struct {
	// Client reads the API server directly, not a cache.
	Client  client.Reader
	Catalog *module.Catalog
	// Modules stores the modules that created Machines, States the states of Machines.
	Modules *store.Store
	States  *state.Store
	// ClusterValues are the defaults of fields that a providerSpec omits.
	ClusterValues module.ClusterValues
	// ModuleUpdates says how a changed module reaches existing Machines; default is to hold the
	// update.
	ModuleUpdates ModuleUpdates
	// Environment says how to reach the infrastructure; default is the usual way.
	Environment EnvironmentReader
	// Cluster reads what modules may know about the cluster; nil for nothing.
	Cluster module.ClusterReader
	// Rights detects missing permissions of credentials; nil to skip.
	Rights *rights.Reader
	// References says which Secrets Machines may use; nil allows all.
	References *references.Policy
	// Adoption says which adoption requests count; default none. Its installation is Installation,
	// too.
	Adoption adoption.Rules
	// Installation signs annotations on Machines; without it, none is trusted.
	Installation *installation.Installation
	// Bootstrap fills in placeholders of user data; nil leaves them.
	Bootstrap *bootstrap.Tokens
	// WithoutCredentials disables reading Secrets with credentials.
	WithoutCredentials bool
	// Clock defaults to the system clock.
	Clock clock.PassiveClock
}

// Reader reads the desired state of Machines and the facts about them. It writes nothing.
type Reader struct {
	client      client.Reader
	catalog     *module.Catalog
	modules     *store.Store
	states      *state.Store
	values      module.ClusterValues
	updates     ModuleUpdates
	environment EnvironmentReader
	cluster     module.ClusterReader
	rights      *rights.Reader
	references  *references.Policy
	adoption    adoption.Rules
	// installation signs annotations on Machines.
	installation *installation.Installation
	bootstrap    *bootstrap.Tokens
	// withoutCredentials disables reading Secrets with credentials.
	withoutCredentials bool
	recent             recentReads
	clock              clock.PassiveClock
	held               render.Held
}

// NewReader returns a Reader.
func NewReader(options Options) (*Reader, error) {
	if options.ModuleUpdates == "" {
		options.ModuleUpdates = ModuleUpdatesHold
	}
	if err := options.ModuleUpdates.check(); err != nil {
		return nil, err
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	options.Adoption.Installation = options.Installation
	return &Reader{
		client: options.Client, catalog: options.Catalog, modules: options.Modules, states: options.States,
		values:  options.ClusterValues,
		updates: options.ModuleUpdates, environment: options.Environment, cluster: options.Cluster, rights: options.Rights,
		references: options.References, adoption: options.Adoption, installation: options.Installation,
		bootstrap: options.Bootstrap, withoutCredentials: options.WithoutCredentials, clock: options.Clock,
	}, nil
}

// Facts reads the facts about a Machine, except its run. It reads the state from the API server,
// because a cache could lag behind our own writes.
func (r *Reader) Facts(ctx context.Context, machine *machinev1beta1.Machine) (*lifecycle.Facts, error) {
	snapshot, err := r.states.Get(ctx, state.KeyFor(machine.Namespace, machine.UID))
	if errors.Is(err, state.ErrNotFound) {
		return r.FactsOf(ctx, machine, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's state: %w", err)
	}
	return r.FactsOf(ctx, machine, snapshot)
}

// FactsOf returns the facts about a Machine whose state was read. snapshot is nil without a state.
func (r *Reader) FactsOf(ctx context.Context, machine *machinev1beta1.Machine,
	snapshot *state.Snapshot) (*lifecycle.Facts, error) {
	f, err := lifecycle.NewFacts(machine, snapshot, r.installation)
	if err != nil {
		return nil, err
	}
	f.Believe(r.clock.Now())
	f.Inherits = r.inherits(machine, f)
	if releases := f.Adoption.Adoption == lifecycle.AdoptionRelease; f.Foreign() || releases &&
		(f.Stored || f.Witness != nil) {
		set, err := r.setOf(ctx, machine)
		if err != nil {
			return nil, err
		}
		f.Adoption = r.adoption.Apply(f.Adoption, machine, set)
	}
	if f.MayInherit() {
		f.Adoption = r.inherited(f.Adoption, machine)
	}
	return f, nil
}

// setOf returns the Machine's MachineSet, or nil.
func (r *Reader) setOf(ctx context.Context, machine *machinev1beta1.Machine) (*machinev1beta1.MachineSet, error) {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil, nil
	}
	set := &machinev1beta1.MachineSet{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Machine's MachineSet: %w", err)
	}
	return set, nil
}

// Complete returns the module that serves a Machine now, and the Machine with the cluster's
// defaults.
func (r *Reader) Complete(machine *machinev1beta1.Machine) (*machinev1beta1.Machine, *module.Module, error) {
	current, err := r.current(machine)
	if err != nil {
		return nil, nil, err
	}
	machine, _ = render.Complete(machine, current, r.values)
	return machine, current, nil
}

func (r *Reader) current(machine *machinev1beta1.Machine) (*module.Module, error) {
	served, err := render.ModuleFor(r.catalog, machine, r.values[module.ValuePlatform])
	if err != nil {
		return nil, invalid(err)
	}
	return served, nil
}

// secret reads a Secret in the Machine's namespace. It returns nil for an empty name.
func (r *Reader) secret(ctx context.Context, machine *machinev1beta1.Machine, name string, use references.Use) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil
	}
	secret, err := r.read(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, &SecretError{Missing: true, Message: fmt.Sprintf(
			"Secret %s/%s with the %s, named in spec.providerSpec.value, does not exist; create it or name another",
			machine.Namespace, name, use)}
	case err != nil:
		return nil, ofSecret(fmt.Errorf("reading Secret %s/%s with the %s: %w", machine.Namespace, name, use, err))
	}
	return secret, nil
}

func data(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	return secret.Data
}
