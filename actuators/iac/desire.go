package iac

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// secretRetry is how soon a Secret is looked for again that is missing.
const secretRetry = 15 * time.Second

// desired is what a Machine asks for.
type desired struct {
	module *module.Module
	inputs *render.Inputs
	// fingerprint covers inputs, module and credentials.
	fingerprint string
	// credentialsSecret is the name of the Secret with the credentials, and keys are what is read of it.
	credentialsSecret string
	keys              []v1alpha1.CredentialKey
	// place is where the instance is to be, as the module declares it; placeErr says why that is not known.
	place    module.Place
	placeErr error
	// notices are to be sent when a run begins.
	notices []events.Event
}

// desireOwn renders a Machine for an operation with the module that is its own.
func (r *reader) desireOwn(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*desired, error) {
	s, err := r.choices(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	if s.own == nil {
		return r.desireInstead(ctx, machine, s, operation)
	}
	return r.desire(ctx, machine, s.own, operation)
}

// desireInstead renders a Machine with the current module in place of its own, which is lost.
func (r *reader) desireInstead(ctx context.Context, machine *machinev1beta1.Machine, s *choices, operation runs.Operation) (*desired, error) {
	wanted, err := r.desire(ctx, machine, s.current, operation)
	if wanted != nil {
		wanted.notices = append(wanted.notices, s.notices(machine)...)
	}
	return wanted, err
}

// desire renders a Machine for an operation with a module. A destroy does without user data that is gone.
func (r *reader) desire(ctx context.Context, machine *machinev1beta1.Machine, served *module.Module, operation runs.Operation) (*desired, error) {
	machine, _ = render.Complete(machine, served, r.facts)
	credentialsRef, userDataRef, err := render.Refs(machine, served)
	if err != nil {
		return nil, invalid(err)
	}
	if r.blind {
		return r.desireBlindly(ctx, machine, served, userDataRef)
	}
	credentials, err := r.secret(ctx, machine, credentialsRef.Name, "credentials")
	if err != nil {
		return nil, late(operation, err)
	}
	userData, err := r.secret(ctx, machine, userDataRef.Name, "user data")
	if err != nil && operation != runs.Destroy {
		return nil, late(operation, err)
	}
	keys, err := render.CredentialKeys(machine, served)
	if err != nil {
		return nil, invalid(err)
	}
	inputs, err := render.Render(render.Input{
		Machine:            machine,
		ClusterID:          machine.Labels[machinev1beta1.MachineClusterIDLabel],
		Module:             served,
		Credentials:        data(credentials),
		CredentialsVersion: versionOf(keys, credentials),
		UserData:           data(userData)[userDataKey(served)],
	})
	if render.OnlySecrets(err) {
		return nil, late(operation, err)
	}
	if err != nil {
		return nil, invalid(err)
	}
	wanted := &desired{
		module: served, inputs: inputs, fingerprint: fingerprintOf(inputs.Hash, served.Digest()), credentialsSecret: credentialsRef.Name, keys: keys,
	}
	r.locate(ctx, wanted, data(credentials))
	return wanted, nil
}

// locate finds out where the instance is to be, with these credentials. What stands in the way stands in the way of a run alone.
func (r *reader) locate(ctx context.Context, d *desired, credentials map[string][]byte) {
	around, err := r.look(ctx, d.module)
	if err != nil {
		d.placeErr = err
		return
	}
	environment, _ := around.with(d.inputs.Environment, nil)
	d.place, d.placeErr = d.module.Place(d.inputs.Variables, credentials, environment)
}

// served answers the module that serves the Machine's providerSpec.
func (r *reader) served(machine *machinev1beta1.Machine) (*module.Module, error) {
	served, err := render.ModuleFor(r.catalog, machine)
	if err != nil {
		return nil, invalid(err)
	}
	return served, nil
}

// invalid makes err one that only a change of the Machine helps.
func invalid(err error) error { return actuators.InvalidConfiguration("%s", err.Error()) }

// late makes err one that a Secret can mend without a change of the Machine.
func late(operation runs.Operation, err error) error { return typed(operation, err).In(secretRetry) }

// secret reads a Secret in the Machine's namespace; nil when name is empty.
func (r *reader) secret(ctx context.Context, machine *machinev1beta1.Machine, name, what string) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: machine.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the Secret %s/%s with the %s, which spec.providerSpec.value names, does not exist; create it, or name another",
			machine.Namespace, name, what)
	case err != nil:
		return nil, fmt.Errorf("reading the Secret %s/%s with the %s: %w", machine.Namespace, name, what, err)
	}
	return secret, nil
}

func data(secret *corev1.Secret) map[string][]byte {
	if secret == nil {
		return nil
	}
	return secret.Data
}

// versionOf names the values that the module takes from its credentials. The Secret's resourceVersion would not do: the API server
// writes into tokens when they were last used. The version reaches nothing but the state Secret, which is as secret.
func versionOf(keys []v1alpha1.CredentialKey, secret *corev1.Secret) string {
	if secret == nil || len(keys) == 0 {
		return ""
	}
	parts := []string{string(secret.UID)}
	for _, key := range keys {
		parts = append(parts, key.Key, string(secret.Data[key.Key]))
	}
	return fingerprintOf(parts...)
}

func userDataKey(m *module.Module) string {
	if spec := m.Spec().UserData; spec != nil {
		return spec.Key
	}
	return ""
}

// fingerprintOf hashes parts, told apart from one another.
func fingerprintOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
