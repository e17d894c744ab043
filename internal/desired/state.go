package desired

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/addresses"
	"github.com/machine-iac/machine-iac-operator/internal/module/instance"
	"github.com/machine-iac/machine-iac-operator/internal/module/platform"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// State is the desired state of a Machine.
type State struct {
	Module *module.Module
	Inputs *render.Inputs
	// Fingerprint covers inputs, module and credentials.
	Fingerprint string
	// CredentialsSecret is the name of the Secret with the credentials, and keys are what is read of it.
	CredentialsSecret string
	keys              []v1alpha1.CredentialKey
	// userDataSecret is the name of the Secret with the user data.
	userDataSecret string
	// secrets are the versions of both, cluster what the module is given of the cluster; nil for nothing.
	secrets [2]version
	cluster *platform.Cluster
	// Place is where the instance is to be, as the module declares it; PlaceErr says why that is not known.
	Place    instance.Place
	PlaceErr error
	// Incomplete says why nothing may be made with it: it has the stored inputs, which lack user data, and what the Machine asks for cannot be rendered.
	// What exists can be looked up and destroyed with it. Nil where everything is known.
	Incomplete error
	// ModuleMissing says that Module is used in place of the pinned one, and why; empty where it is the pinned one.
	ModuleMissing string
}

// render renders a Machine for an operation with a module. Where the Machine names a Secret that it may not use, nothing but what its instance was
// brought to already is rendered, and no error shows what is in the Secret. Where its state was read ahead, Secrets of a moment ago do as long as what is
// rendered with them is what was applied.
func (r *Reader) render(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, used *module.Module, operation runs.Operation) (*State, error) {
	if f.ReadAhead && operation == runs.Update && f.Record.Intent == nil {
		s, refused, err := r.rendered(ctx, machine, f, used, operation, true)
		if refused == nil && err == nil && s.Fingerprint == f.Record.Fingerprint {
			return s, nil
		}
	}
	s, refused, err := r.rendered(ctx, machine, f, used, operation, false)
	if refused != nil && (err != nil || s.Fingerprint != f.Record.Fingerprint) {
		return nil, refused
	}
	return s, err
}

// rendered renders a Machine, with Secrets of a moment ago where recent is set; refused says that it may not use what it names.
func (r *Reader) rendered(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, used *module.Module, operation runs.Operation, recent bool) (s *State, refused, err error) {
	machine, _ = render.Complete(machine, used, r.values)
	credentialsRef, userDataRef, err := render.Refs(machine, used)
	if err != nil {
		return nil, nil, invalid(err)
	}
	cluster, err := r.clusterFor(ctx, used)
	if err != nil {
		return nil, nil, err
	}
	if r.withoutCredentials {
		s, err = r.renderWithoutCredentials(ctx, machine, used, cluster, userDataRef)
		return s, nil, err
	}
	read, err := r.secrets(ctx, machine, f, credentialsRef, userDataRef, operation, recent)
	if err != nil {
		return nil, nil, err
	}
	keys, err := render.CredentialKeys(machine, used)
	if err != nil {
		return nil, read.refused, invalid(err)
	}
	input := render.Input{
		Machine:            machine,
		ClusterID:          machine.Labels[machinev1beta1.MachineClusterIDLabel],
		Module:             used,
		Cluster:            cluster,
		Credentials:        data(read.credentials),
		CredentialsVersion: versionOf(keys, read.credentials),
		UserData:           data(read.userData)[userDataKey(used)],
		Held:               &r.held,
	}
	inputs, err := render.Render(input)
	if render.OnlySecrets(err) || errors.Is(err, addresses.ErrNone) {
		return nil, read.refused, ofSecret(err)
	}
	if err != nil {
		return nil, read.refused, invalid(err)
	}
	inputs.Warnings = append(inputs.Warnings, r.missingRights(ctx, input, credentialsRef)...)
	s = &State{
		Module: used, Inputs: inputs, Fingerprint: fingerprintOf(inputs.Hash, used.Digest()),
		CredentialsSecret: credentialsRef.Name, keys: keys, userDataSecret: userDataRef.Name,
		secrets: versionsOf(read.credentials, read.userData), cluster: cluster,
	}
	r.locate(ctx, s, data(read.credentials))
	return s, read.refused, nil
}

// missingRights returns what the credentials certainly lack. It refuses nothing.
func (r *Reader) missingRights(ctx context.Context, input render.Input, credentials render.Ref) []render.Warning {
	var warnings []render.Warning
	secret := types.NamespacedName{Namespace: input.Machine.Namespace, Name: credentials.Name}
	for _, text := range r.rights.Missing(ctx, render.Rights(input), secret) {
		warnings = append(warnings, render.Warning{Path: credentials.Path, Message: text, Advice: true})
	}
	return warnings
}

// renderWithoutCredentials is render where the credentials are not read: the state has no fingerprint and no place.
func (r *Reader) renderWithoutCredentials(ctx context.Context, machine *machinev1beta1.Machine, used *module.Module, cluster *platform.Cluster, ref render.Ref) (*State, error) {
	userData, err := r.secret(ctx, machine, ref.Name, references.UserData, false)
	if err != nil {
		return nil, err
	}
	input := render.Input{
		Machine: machine, ClusterID: machine.Labels[machinev1beta1.MachineClusterIDLabel], Module: used, Cluster: cluster,
		UserData: data(userData)[userDataKey(used)], Held: &r.held,
	}
	inputs := &render.Inputs{}
	if inputs.Warnings, err = render.Check(input); err == nil {
		inputs.Variables, err = render.Variables(input)
	}
	if err != nil {
		return nil, invalid(err)
	}
	if len(input.UserData) > 0 {
		inputs.Sensitive = []string{string(input.UserData)}
	}
	return &State{Module: used, Inputs: inputs}, nil
}

// locate finds out where the instance is to be, with these credentials. What prevents that prevents a run, and nothing else.
func (r *Reader) locate(ctx context.Context, s *State, credentials map[string][]byte) {
	around, err := r.Environment(ctx, s.Module)
	if err != nil {
		s.PlaceErr = err
		return
	}
	environment, _ := around.With(s.Inputs.Environment, nil)
	s.Place, s.PlaceErr = instance.PlaceOf(s.Module, s.Inputs.Variables, credentials, environment)
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

// fingerprintOf hashes parts with a separator between them.
func fingerprintOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
