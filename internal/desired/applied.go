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
	"strconv"
	"unicode/utf8"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxUnpacked bounds the size of unpacked inputs.
const maxUnpacked = 8 << 20

// AppliedInputs are the inputs applied last to an instance. They are stored with its state, so that
// the instance can be destroyed whatever happens to its providerSpec. User data is omitted, because
// a destroy does not need it.
type AppliedInputs struct {
	// Variables are the module's variables.
	Variables map[string]json.RawMessage `json:"variables"`
	// CredentialsSecret is the name of the Secret with the credentials, or empty. The Machine may
	// keep using this Secret and the next, whatever their labels.
	CredentialsSecret string `json:"credentialsSecret,omitempty"`
	// UserDataSecret is the name of the Secret with the user data. It is empty if there is none, or
	// if an earlier version stored the inputs.
	UserDataSecret string `json:"userDataSecret,omitempty"`
	// Keys are the Secret's keys and their names in the environment.
	Keys []v1alpha1.CredentialKey `json:"keys,omitempty"`
}

// PackInputs returns the inputs in stored form, or nil if they are too large.
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

// ReadInputs decodes stored inputs.
func ReadInputs(packed []byte) (*AppliedInputs, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the stored inputs: %w", err)
	}
	kept := &AppliedInputs{}
	if err := json.NewDecoder(io.LimitReader(reader, maxUnpacked)).Decode(kept); err != nil {
		return nil, fmt.Errorf("reading the stored inputs: %w", err)
	}
	return kept, nil
}

// noUserData replaces user data in a destroy, which needs none. The lookup of a missing instance
// plans the whole module, and modules reject user data that is empty or not an Ignition
// configuration.
const noUserData = `{"ignition":{"version":"3.0.0"}}`

// lastApplied returns the desired state for a Machine's destroy: the inputs applied last and the
// current credentials. If none are stored, or they are no longer usable, it is the Machine's
// current desired state.
func (r *Reader) lastApplied(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*State, error) {
	switch {
	case f.Inputs == nil && f.Gone:
		return nil, errors.New("the Machine is gone and its state has no stored inputs to destroy the instance with; " +
			"delete the resources in the state by hand, then the finalizer and the Secret of the state")
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

// Applied returns the configuration applied last to an instance, with the current credentials and
// user data. The instance is checked and repaired with it while the Machine's update cannot be
// made. A missing module is replaced as in a destroy; ModuleMissing says so.
func (r *Reader) Applied(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*State, error) {
	if f.Inputs == nil {
		return nil, errors.New("the state has no stored inputs: they were too large, or the state predates stored inputs")
	}
	applied, err := r.stored(ctx, identified(machine, f), f, runs.Drift)
	if err != nil {
		return nil, err
	}
	credentials, err := r.secret(ctx, machine, applied.CredentialsSecret, references.Credentials)
	if err != nil {
		return nil, err
	}
	stored := render.Ref{Path: "the inputs that are stored with the state"} // which may have been tampered with
	if refused := r.refused(credentials, references.Credentials, stored); refused != nil && refused.Final {
		return nil, refused
	}
	userData, err := r.secret(ctx, machine, applied.userDataSecret, references.UserData)
	// Fill returns the user data unchanged if it fails.
	text, token, _ := r.bootstrap.Fill(identified(machine, f), userData, data(userData)[userDataKey(applied.Module)])
	if err != nil || !utf8.Valid(text) || len(text) == 0 || r.refused(userData, references.UserData, stored) != nil {
		return applied, nil // an existing instance needs none
	}
	applied.hide(token)
	return applied, applied.setUserData(string(text))
}

// setUserData sets the module's user data.
func (s *State) setUserData(text string) error {
	encoded, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("writing user data: %w", err)
	}
	var variables map[string]json.RawMessage
	if err := json.Unmarshal(s.Inputs.Variables, &variables); err != nil {
		return errNoObject
	}
	variables[module.VariableUserData] = encoded
	s.Inputs.Sensitive = render.SensitiveValues(nil, nil, append(s.Inputs.Sensitive, text)...)
	s.Inputs.Variables, err = json.Marshal(variables)
	return err
}

// errNoObject replaces the decoder's message, which may contain a value.
var errNoObject = errors.New("reading the stored inputs: not a JSON object")

// ofAbandonedRun returns the desired state for recovering an abandoned run: its inputs with the
// current user data and credentials. If they match the Machine's desired state, or are not stored,
// it is the latter. If that cannot be rendered, the inputs lack user data and are only good for
// finding what was created.
func (r *Reader) ofAbandonedRun(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	operation runs.Operation) (*State, error) {
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
	secret, err := r.secret(ctx, machine, own.CredentialsSecret, references.Credentials)
	if err != nil {
		return nil, err
	}
	r.locate(ctx, kept, secret)
	return kept, nil
}

// stored returns the desired state of the stored inputs with the current credentials.
func (r *Reader) stored(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts,
	operation runs.Operation) (*State, error) {
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
	credentials, err := r.secret(ctx, machine, kept.CredentialsSecret, references.Credentials)
	if err != nil {
		return nil, err
	}
	if operation == runs.Destroy && kept.Variables != nil {
		kept.Variables[module.VariableUserData] = json.RawMessage(strconv.Quote(noUserData))
	}
	kept.Keys = declared(kept.Keys, used)
	environment, files, err := kept.environment(used, data(credentials))
	if err != nil {
		return nil, ofSecret(err)
	}
	variables, err := json.Marshal(kept.Variables)
	if err != nil {
		return nil, fmt.Errorf("encoding the stored inputs: %w", err)
	}
	wanted := &State{
		Module: used, Fingerprint: fingerprintOf("remembered", string(f.Inputs), used.Digest()),
		CredentialsSecret: kept.CredentialsSecret, userDataSecret: kept.UserDataSecret, keys: kept.Keys,
		Inputs: &render.Inputs{Variables: variables, Environment: environment, Files: files,
			Sensitive: render.SensitiveValues(kept.Keys, data(credentials))},
	}
	if m.Pinned == nil {
		wanted.ModuleMissing = m.missingMessage()
	}
	r.locate(ctx, wanted, credentials)
	return wanted, nil
}

// declared returns the stored keys that the module declares, under their names in the Secret. The
// module, not the writer of the state Secret, decides how a value is used and validated.
func declared(stored []v1alpha1.CredentialKey, used *module.Module) []v1alpha1.CredentialKey {
	credentials := used.Spec().Credentials
	if credentials == nil {
		return nil
	}
	var keys []v1alpha1.CredentialKey
	for _, one := range stored {
		at := slices.IndexFunc(credentials.Keys, func(key v1alpha1.CredentialKey) bool {
			return key.Env == one.Env && key.File == one.File && slices.Equal(key.Path, one.Path)
		})
		if at >= 0 {
			key := credentials.Keys[at]
			key.Key = one.Key
			keys = append(keys, key)
		}
	}
	return keys
}

// withSecrets takes the user data and credentials from another state, because the abandoned run's
// may have been the reason for its failure.
func (s *State) withSecrets(other *State) error {
	var mine, theirs map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(s.Inputs.Variables, &mine),
		json.Unmarshal(other.Inputs.Variables, &theirs)); err != nil {
		return errNoObject
	}
	mine[module.VariableUserData] = theirs[module.VariableUserData]
	variables, err := json.Marshal(mine)
	if err != nil {
		return fmt.Errorf("encoding the stored inputs: %w", err)
	}
	s.Inputs.Variables, s.Inputs.Environment, s.Inputs.Files = variables, other.Inputs.Environment, other.Inputs.Files
	s.Inputs.Sensitive = append(s.Inputs.Sensitive, other.Inputs.Sensitive...)
	s.CredentialsSecret, s.userDataSecret, s.keys = other.CredentialsSecret, other.userDataSecret, other.keys
	s.Bootstraps = other.Bootstraps
	return nil
}

// sameJSON reports whether two texts encode the same JSON value.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// environment returns the environment variables and files of the module's providers.
func (a *AppliedInputs) environment(used *module.Module, credentials map[string][]byte) (environment, files map[string]string, err error) {
	environment, files, faults := module.ReadCredentials(a.Keys, credentials)
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("reading the credentials in Secret %s: %s", a.CredentialsSecret, faults[0])
	}
	maps.Copy(environment, used.Constants())
	return environment, files, nil
}
