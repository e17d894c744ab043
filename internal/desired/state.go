package desired

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// State is the desired state of a Machine.
type State struct {
	Module *module.Module
	Inputs *render.Inputs
	// Fingerprint covers inputs, module and credentials, but not the user data. A record of an
	// earlier version may have a fingerprint that includes user data. Fingerprint is then that one,
	// and Renewed replaces it; otherwise Renewed is empty.
	Fingerprint, Renewed string
	// CredentialsSecret is the name of the Secret with the credentials, and keys are the keys read
	// from it.
	CredentialsSecret string
	keys              []v1alpha1.CredentialKey
	userDataSecret    string
	// Bootstraps reports that the user data contains the Machine's bootstrap token.
	Bootstraps bool
	// secrets are the versions of both Secrets. cluster holds the facts given to the module, or
	// nil.
	secrets [2]version
	cluster *module.Cluster
	// Place is the instance's place, as the module declares it. PlaceErr says why it is unknown.
	Place    module.Place
	PlaceErr error
	// formerPlace are the lines of FormerPlaceAnnotation.
	formerPlace []string
	// Incomplete says why nothing may be created with it: it has the stored inputs without user
	// data, and the Machine's desired state cannot be rendered. Existing resources can be looked up
	// and destroyed. It is nil if everything is known.
	Incomplete error
	// ModuleMissing says why Module replaces the pinned one, or is empty.
	ModuleMissing string
}

// render renders a Machine for an operation with a module. If the Machine names a Secret that it
// must not use, only the configuration already applied is rendered, and no error reveals the
// Secret's content.
func (r *Reader) render(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, used *module.Module,
	operation runs.Operation) (*State, error) {
	s, refused, err := r.rendered(ctx, machine, f, used, operation)
	if refused != nil && (err != nil || s.Fingerprint != f.Record.Fingerprint) {
		return nil, refused
	}
	return s, err
}

// rendered renders a Machine. refused says that it must not use a Secret that it names.
func (r *Reader) rendered(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	used *module.Module, operation runs.Operation) (s *State, refused, err error) {
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
	read, err := r.secrets(ctx, machine, f, credentialsRef, userDataRef, operation)
	if err != nil {
		return nil, nil, err
	}
	keys, err := render.CredentialKeys(machine, used)
	if err != nil {
		return nil, read.refused, invalid(err)
	}
	userData, token, err := r.userData(machine, used, read.userData, userDataRef, operation)
	if err != nil {
		return nil, read.refused, err
	}
	input := render.Input{
		Machine:            machine,
		ClusterID:          machine.Labels[machinev1beta1.MachineClusterIDLabel],
		Module:             used,
		Cluster:            cluster,
		Credentials:        data(read.credentials),
		CredentialsVersion: versionOf(keys, read.credentials),
		UserData:           userData,
		Held:               &r.held,
	}
	inputs, err := render.Render(input)
	if err != nil && operation != runs.Create && len(input.UserData) > 0 {
		input.UserData = nil // it may be invalid, and an existing instance needs none
		inputs, err = render.Render(input)
	}
	if render.OnlySecrets(err) || errors.Is(err, render.ErrNoAddress) {
		return nil, read.refused, ofSecret(err)
	}
	if err != nil {
		return nil, read.refused, invalid(err)
	}
	inputs.Warnings = append(inputs.Warnings, r.missingRights(ctx, input, credentialsRef)...)
	s = &State{
		Module: used, Inputs: inputs, Fingerprint: fingerprintOf(inputs.Hash, used.Digest()),
		CredentialsSecret: credentialsRef.Name, keys: keys, userDataSecret: read.userDataSecret,
		secrets: versionsOf(read.credentials, read.userData), cluster: cluster,
	}
	s.hide(token)
	s.recognize(f.Record.Fingerprint, input.CredentialsVersion)
	r.locate(ctx, s, read.credentials)
	return s, read.refused, nil
}

// userData returns the user data for an operation, and the bootstrap token that it contains, or "".
func (r *Reader) userData(machine *machinev1beta1.Machine, used *module.Module, secret *corev1.Secret, ref render.Ref,
	operation runs.Operation) (filled []byte, token string, err error) {
	filled, token, err = r.bootstrap.Fill(machine, secret, data(secret)[userDataKey(used)])
	if err != nil && operation == runs.Create {
		return nil, "", ofSecret(fmt.Errorf("%s: %w", ref.Path, err))
	}
	if operation == runs.Destroy && ref.Name != "" && len(filled) == 0 {
		filled = []byte(noUserData)
	}
	return filled, token, nil
}

// hide notes that the user data contains a bootstrap token, and has it masked, also without its ID.
func (s *State) hide(token string) {
	if token == "" {
		return
	}
	s.Bootstraps = true
	_, key, _ := strings.Cut(token, ".")
	s.Inputs.Sensitive = render.SensitiveValues(nil, nil, append(s.Inputs.Sensitive, token, key)...)
}

// recognize keeps a recorded fingerprint that includes user data if it covers the same inputs.
func (s *State) recognize(recorded, credentialsVersion string) {
	if recorded == "" || recorded == s.Fingerprint {
		return
	}
	if whole := fingerprintOf(render.HashOf(s.Inputs.Variables, credentialsVersion),
		s.Module.Digest()); whole == recorded {
		s.Fingerprint, s.Renewed = whole, s.Fingerprint
	}
}

// Attempt identifies what a run tries to reach: a create with other user data is another attempt.
func (s *State) Attempt(operation runs.Operation) string {
	if operation != runs.Create {
		return s.Fingerprint
	}
	return fingerprintOf(s.Fingerprint, string(s.Inputs.Variables))
}

// missingRights returns warnings about missing permissions of the credentials. It rejects nothing.
func (r *Reader) missingRights(ctx context.Context, input render.Input, credentials render.Ref) []render.Warning {
	var warnings []render.Warning
	secret := types.NamespacedName{Namespace: input.Machine.Namespace, Name: credentials.Name}
	for _, text := range r.rights.Missing(ctx, render.Rights(input), secret) {
		warnings = append(warnings, render.Warning{Path: credentials.Path, Message: text, Advice: true})
	}
	return warnings
}

// renderWithoutCredentials is render without reading the credentials: the result has no fingerprint
// and no place.
func (r *Reader) renderWithoutCredentials(ctx context.Context, machine *machinev1beta1.Machine, used *module.Module, cluster *module.Cluster, ref render.Ref) (*State, error) {
	userData, err := r.secret(ctx, machine, ref.Name, references.UserData)
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

// FormerPlaceAnnotation on a credentials Secret declares renamed parts of a place, such as an
// endpoint, in lines "PART: FORMER => CURRENT". Only writers of the Secret can declare that; they
// could also replace the credentials. A line names both values, so that the author of a providerSpec
// cannot redirect it.
const FormerPlaceAnnotation = "machine-iac.io/former-place"

// Here returns a recorded place with the current value of each renamed part.
func (s *State) Here(recorded module.Place) module.Place {
	here := slices.Clone(recorded)
	for i, part := range here {
		if slices.Contains(s.formerPlace, s.renaming(part)) {
			here[i].Value, _ = s.Place.Value(part.Name)
		}
	}
	return here
}

// Renamings returns the lines of FormerPlaceAnnotation that would make a recorded place the current one.
func (s *State) Renamings(recorded module.Place) (lines []string) {
	for _, part := range recorded {
		if line := s.renaming(part); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// renaming returns the line for a part that has another value now, or "".
func (s *State) renaming(part module.PlacePart) string {
	now, _ := s.Place.Value(part.Name)
	if part.Value == "" || now == "" || now == part.Value {
		return ""
	}
	return part.Name + ": " + part.Value + " => " + now
}

// locate determines the instance's place with these credentials. A failure prevents runs but
// nothing else.
func (r *Reader) locate(ctx context.Context, s *State, credentials *corev1.Secret) {
	if credentials != nil {
		for line := range strings.Lines(credentials.Annotations[FormerPlaceAnnotation]) {
			if line = strings.TrimSpace(line); line != "" {
				s.formerPlace = append(s.formerPlace, line)
			}
		}
	}
	around, err := r.Environment(ctx, s.Module)
	if err != nil {
		s.PlaceErr = err
		return
	}
	environment, _ := around.With(s.Inputs.Environment, nil)
	s.Place, s.PlaceErr = module.PlaceOf(s.Module, s.Inputs.Variables, data(credentials), environment)
}

// versionOf identifies the values that the module takes from its credentials. The Secret's
// resourceVersion is unsuitable, because the API server updates tokens when they are used. The
// version is only stored in the state Secret, which is as confidential.
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

// fingerprintOf hashes parts, separated from each other.
func fingerprintOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
