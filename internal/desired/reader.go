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

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Options are what a Reader works with. All must be set but those that say what they are otherwise.
type Options struct {
	// Client reads the API server itself, never a cache.
	Client  client.Reader
	Catalog *module.Catalog
	// Modules keeps the content of modules that Machines were made with, States the states of Machines.
	Modules *store.Store
	States  *state.Store
	// ClusterValues are the defaults of fields that a providerSpec lacks.
	ClusterValues module.ClusterValues
	// ModuleUpdates says what becomes of Machines whose module has changed; they are held when empty.
	ModuleUpdates ModuleUpdates
	// Environment says how the infrastructure is reached; nil for as usual.
	Environment EnvironmentReader
	// Cluster reads what modules may know of the cluster; nil where nothing is known.
	Cluster platform.Reader
	// Rights finds out what credentials certainly may not do; nil for nothing.
	Rights *rights.Reader
	// References says which Secrets Machines may use; all of them when nil.
	References *references.Policy
	// Adoption is what is done about instances that something else has made, where neither Machine nor MachineSet says it.
	Adoption lifecycle.Adoption
	// WithoutCredentials says that Secrets with credentials are not read.
	WithoutCredentials bool
	// Clock is the system's when nil.
	Clock clock.PassiveClock
}

// Reader reads what Machines ask for, and what decisions about them are made from. It writes nothing.
type Reader struct {
	client      client.Reader
	catalog     *module.Catalog
	modules     *store.Store
	states      *state.Store
	values      module.ClusterValues
	updates     ModuleUpdates
	environment EnvironmentReader
	cluster     platform.Reader
	rights      *rights.Reader
	references  *references.Policy
	adoption    lifecycle.Adoption
	// withoutCredentials says that Secrets with credentials are not read.
	withoutCredentials bool
	shared             sharedReads
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
	return &Reader{
		client: options.Client, catalog: options.Catalog, modules: options.Modules, states: options.States, values: options.ClusterValues,
		updates: options.ModuleUpdates, environment: options.Environment, cluster: options.Cluster, rights: options.Rights,
		references: options.References, adoption: options.Adoption, withoutCredentials: options.WithoutCredentials, clock: options.Clock,
	}, nil
}

// Facts reads the facts about a Machine, all but its run. The state is read from the API server itself: a cache could lag behind our own writes.
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

// FactsOf returns the facts about a Machine whose state was read; snapshot is nil where there is none.
func (r *Reader) FactsOf(ctx context.Context, machine *machinev1beta1.Machine, snapshot *state.Snapshot) (*lifecycle.Facts, error) {
	f, err := lifecycle.NewFacts(machine, snapshot)
	if err != nil || !f.Foreign() || f.Adoption.Adoption != lifecycle.AdoptionNone || f.Adoption.Misread != "" {
		return f, err
	}
	f.Adoption.Adoption, f.Adoption.Misread, err = r.adoptionOfSet(ctx, machine)
	return f, err
}

// adoptionOfSet returns what the MachineSet of a Machine asks for about instances that something else has made, else what all Machines get.
func (r *Reader) adoptionOfSet(ctx context.Context, machine *machinev1beta1.Machine) (adoption lifecycle.Adoption, misread string, err error) {
	owner := metav1.GetControllerOf(machine)
	if owner == nil || owner.Kind != "MachineSet" {
		return r.adoption, "", nil
	}
	set := &machinev1beta1.MachineSet{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: owner.Name}, set)
	if apierrors.IsNotFound(err) || err == nil && set.UID != owner.UID {
		return r.adoption, "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("reading the Machine's MachineSet: %w", err)
	}
	adoption, misread = lifecycle.AdoptionOf(set)
	if misread != "" {
		misread = "MachineSet " + set.Name + ": " + misread
	}
	if adoption == lifecycle.AdoptionNone && misread == "" {
		adoption = r.adoption
	}
	return adoption, misread, nil
}

// Complete returns the module that serves a Machine now, and the Machine with the defaults of the cluster.
func (r *Reader) Complete(machine *machinev1beta1.Machine) (*machinev1beta1.Machine, *module.Module, error) {
	current, err := r.current(machine)
	if err != nil {
		return nil, nil, err
	}
	machine, _ = render.Complete(machine, current, r.values)
	return machine, current, nil
}

// current returns the module that serves the Machine's providerSpec now.
func (r *Reader) current(machine *machinev1beta1.Machine) (*module.Module, error) {
	served, err := render.ModuleFor(r.catalog, machine, r.values[module.ValuePlatform])
	if err != nil {
		return nil, invalid(err)
	}
	return served, nil
}

// secret reads a Secret in the Machine's namespace, as read does; nil when name is empty.
func (r *Reader) secret(ctx context.Context, machine *machinev1beta1.Machine, name string, use references.Use, recent bool) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil
	}
	secret, err := r.read(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: name}, recent)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ofSecret(fmt.Errorf("the Secret %s/%s with the %s, which spec.providerSpec.value names, does not exist; create it, or name another",
			machine.Namespace, name, use))
	case err != nil:
		return nil, ofSecret(fmt.Errorf("reading the Secret %s/%s with the %s: %w", machine.Namespace, name, use, err))
	}
	return secret, nil
}

func (r *Reader) readSecret(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, r.client.Get(ctx, name, secret)
}

func data(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	return secret.Data
}
