package desired

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/credential"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxUnpacked bounds what stored inputs are unpacked to.
const maxUnpacked = 8 << 20

// AppliedInputs are the inputs that were applied to an instance last. They are stored with its state, so that the instance can be removed
// whatever has become of its providerSpec. User data is left out: a destroy does without.
type AppliedInputs struct {
	// Variables are the module's variables.
	Variables map[string]json.RawMessage `json:"variables"`
	// CredentialsSecret is the name of the Secret with the credentials; empty for none. The Machine may go on using these two, whatever their labels are.
	CredentialsSecret string `json:"credentialsSecret,omitempty"`
	// UserDataSecret is the name of the Secret with the user data; empty for none, and where an earlier version stored this.
	UserDataSecret string `json:"userDataSecret,omitempty"`
	// Keys are those of the Secret, and what they become in the environment.
	Keys []v1alpha1.CredentialKey `json:"keys,omitempty"`
}

// PackInputs returns the inputs as they are stored with the state; nil when they are too large.
func (s *State) PackInputs() ([]byte, error) {
	kept := AppliedInputs{CredentialsSecret: s.CredentialsSecret, UserDataSecret: s.userDataSecret, Keys: s.keys}
	if err := json.Unmarshal(s.Inputs.Variables, &kept.Variables); err != nil {
		return nil, fmt.Errorf("packing the inputs: %w", err)
	}
	kept.Variables[module.VariableUserData] = json.RawMessage(`""`)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(kept); err != nil {
		return nil, fmt.Errorf("packing the inputs: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("packing the inputs: %w", err)
	}
	if packed.Len() > state.MaxAttachmentBytes {
		return nil, nil
	}
	return packed.Bytes(), nil
}

// ReadInputs reads inputs as they are stored with a state.
func ReadInputs(packed []byte) (*AppliedInputs, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the inputs that are stored with the state: %w", err)
	}
	kept := &AppliedInputs{}
	if err := json.NewDecoder(io.LimitReader(reader, maxUnpacked)).Decode(kept); err != nil {
		return nil, fmt.Errorf("reading the inputs that are stored with the state: %w", err)
	}
	return kept, nil
}

// lastApplied returns what a Machine is destroyed with: the inputs that were applied last and the present credentials. Where none are stored,
// or they cannot be used any more, it is what the Machine asks for.
func (r *Reader) lastApplied(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*State, error) {
	switch {
	case f.Inputs == nil && f.Gone:
		return nil, errors.New("the Machine is gone, and its state keeps no inputs to destroy the instance with; remove by hand what the state lists, " +
			"and then the finalizer and the Secret of the state")
	case f.Inputs == nil:
		return r.withPinned(ctx, machine, f, runs.Destroy)
	}
	kept, keptErr := r.stored(ctx, machine, f, runs.Destroy)
	if keptErr == nil || f.Gone {
		return kept, keptErr
	}
	wanted, err := r.withPinned(ctx, machine, f, runs.Destroy)
	if IsInvalid(err) {
		return nil, keptErr
	}
	return wanted, err
}

// ofAbandonedRun returns what an abandoned run is recovered with: the inputs that it had, with the present user data and credentials. Where they are
// still what the Machine asks for, or are not stored, it is what the Machine asks for. Where that cannot be rendered, the inputs lack their user data
// and serve to find what was made, and no more.
func (r *Reader) ofAbandonedRun(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*State, error) {
	own, err := r.withPinned(ctx, machine, f, operation)
	if f.Inputs == nil {
		return own, err
	}
	if own == nil && isRefused(err) && operation != runs.Destroy {
		return nil, err
	}
	kept, keptErr := r.stored(ctx, machine, f, operation)
	if keptErr != nil {
		return nil, keptErr
	}
	if own == nil {
		kept.Incomplete = err
		return kept, nil
	}
	if err := kept.withSecrets(own); err != nil {
		return nil, err
	}
	if sameJSON(kept.Inputs.Variables, own.Inputs.Variables) {
		return own, nil
	}
	secret, err := r.secret(ctx, machine, own.CredentialsSecret, references.Credentials, false)
	if err != nil {
		return nil, err
	}
	r.locate(ctx, kept, data(secret))
	return kept, nil
}

// stored returns the desired state of the inputs that are stored with a state, with the present credentials.
func (r *Reader) stored(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*State, error) {
	kept, err := ReadInputs(f.Inputs)
	if err != nil {
		return nil, err
	}
	m, err := r.modulesFor(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	if err := m.mayReplace(operation); m.Pinned == nil && err != nil {
		return nil, err
	}
	used := cmp.Or(m.Pinned, m.Current)
	credentials, err := r.secret(ctx, machine, kept.CredentialsSecret, references.Credentials, false)
	if err != nil {
		return nil, err
	}
	environment, files, err := kept.environment(used, data(credentials))
	if err != nil {
		return nil, ofSecret(err)
	}
	variables, err := json.Marshal(kept.Variables)
	if err != nil {
		return nil, fmt.Errorf("writing the inputs that are stored with the state: %w", err)
	}
	wanted := &State{
		Module: used, Fingerprint: fingerprintOf("remembered", string(f.Inputs), used.Digest()),
		CredentialsSecret: kept.CredentialsSecret, userDataSecret: kept.UserDataSecret, keys: kept.Keys,
		Inputs: &render.Inputs{Variables: variables, Environment: environment, Files: files, Sensitive: kept.sensitive(data(credentials))},
	}
	if m.Pinned == nil {
		wanted.ModuleMissing = m.missingMessage()
	}
	r.locate(ctx, wanted, data(credentials))
	return wanted, nil
}

// withSecrets takes the user data and the credentials of another: those that an abandoned run had may be why it was abandoned.
func (s *State) withSecrets(other *State) error {
	var mine, theirs map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(s.Inputs.Variables, &mine), json.Unmarshal(other.Inputs.Variables, &theirs)); err != nil {
		return errors.New("reading the inputs that are stored with the state: they are no JSON object") // the decoder's words may show a value
	}
	mine[module.VariableUserData] = theirs[module.VariableUserData]
	variables, err := json.Marshal(mine)
	if err != nil {
		return fmt.Errorf("writing the inputs that are stored with the state: %w", err)
	}
	s.Inputs.Variables, s.Inputs.Environment, s.Inputs.Files = variables, other.Inputs.Environment, other.Inputs.Files
	s.Inputs.Sensitive = append(s.Inputs.Sensitive, other.Inputs.Sensitive...)
	s.CredentialsSecret, s.userDataSecret, s.keys = other.CredentialsSecret, other.userDataSecret, other.keys
	return nil
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// environment returns what the module's providers read, from variables and files.
func (a *AppliedInputs) environment(used *module.Module, credentials map[string][]byte) (environment, files map[string]string, err error) {
	environment, files, faults := credential.Read(a.Keys, credentials)
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("reading the credentials in the Secret %s: %s", a.CredentialsSecret, faults[0])
	}
	maps.Copy(environment, used.Constants())
	return environment, files, nil
}

// sensitive returns what must not be shown: values of the Secret that are not public, longer ones first.
func (a *AppliedInputs) sensitive(credentials map[string][]byte) []string {
	var values []string
	for name, value := range credentials {
		if slices.ContainsFunc(a.Keys, func(key v1alpha1.CredentialKey) bool { return key.Key == name && key.Public && len(key.Path) == 0 }) {
			continue
		}
		for _, text := range []string{string(value), strings.TrimSpace(string(value))} {
			if text != "" {
				values = append(values, text)
			}
		}
	}
	values = append(values, credential.SecretParts(a.Keys, credentials)...)
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(values)
}
