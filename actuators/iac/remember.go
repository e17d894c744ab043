package iac

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

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// maxRemembered bounds what remembered inputs are unpacked to.
const maxRemembered = 8 << 20

// remembered are the inputs that an instance was made with, so that it can be removed whatever has become of its providerSpec. User data
// is left out: a destroy does without.
type remembered struct {
	// Variables are the module's variables.
	Variables map[string]json.RawMessage `json:"variables"`
	// CredentialsSecret is the name of the Secret with the credentials; empty for none.
	CredentialsSecret string `json:"credentialsSecret,omitempty"`
	// Keys are those of the Secret, and what they become in the environment.
	Keys []v1alpha1.CredentialKey `json:"keys,omitempty"`
}

// remember answers what is to be kept of inputs, packed; nil when that has no room.
func (d *desired) remember() ([]byte, error) {
	kept := remembered{CredentialsSecret: d.credentialsSecret, Keys: d.keys}
	if err := json.Unmarshal(d.inputs.Variables, &kept.Variables); err != nil {
		return nil, fmt.Errorf("remembering inputs: %w", err)
	}
	kept.Variables[module.VariableUserData] = json.RawMessage(`""`)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(kept); err != nil {
		return nil, fmt.Errorf("remembering inputs: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("remembering inputs: %w", err)
	}
	if packed.Len() > state.MaxAttachmentBytes {
		return nil, nil
	}
	return packed.Bytes(), nil
}

func readRemembered(packed []byte) (*remembered, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the inputs that are kept with the state: %w", err)
	}
	kept := &remembered{}
	if err := json.NewDecoder(io.LimitReader(reader, maxRemembered)).Decode(kept); err != nil {
		return nil, fmt.Errorf("reading the inputs that are kept with the state: %w", err)
	}
	return kept, nil
}

// desireLast returns what a Machine is destroyed with: the inputs that its instance was made with and the credentials of now. Without
// remembered inputs, or where they cannot be used any more, it is what the Machine asks for.
func (r *reader) desireLast(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts) (*desired, error) {
	if f.Inputs == nil {
		return r.desireOwn(ctx, machine, f, runs.Destroy)
	}
	kept, keptErr := r.desireRemembered(ctx, machine, f, runs.Destroy)
	if keptErr == nil || f.Gone {
		return kept, keptErr
	}
	wanted, err := r.desireOwn(ctx, machine, f, runs.Destroy)
	if actuators.IsInvalidConfiguration(err) {
		return nil, keptErr
	}
	return wanted, err
}

// desireLost returns what a lost run is recovered with: the inputs that it had, with the user data and the credentials of now. Where they are
// what the Machine asks for still, or are not known, it is what it asks for.
func (r *reader) desireLost(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*desired, error) {
	own, err := r.desireOwn(ctx, machine, f, operation)
	if f.Inputs == nil {
		return own, err
	}
	if own == nil {
		return r.desireRemembered(ctx, machine, f, operation)
	}
	kept, err := r.desireRemembered(ctx, machine, f, operation)
	if err != nil {
		return nil, err
	}
	if err := kept.withSecrets(own); err != nil {
		return nil, err
	}
	if sameJSON(kept.inputs.Variables, own.inputs.Variables) {
		return own, nil
	}
	secret, err := r.secret(ctx, machine, own.credentialsSecret, "credentials")
	if err != nil {
		return nil, late(operation, err)
	}
	r.locate(ctx, kept, data(secret))
	return kept, nil
}

// desireRemembered returns what is asked for by the inputs that are kept with a state, with the credentials of now.
func (r *reader) desireRemembered(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, operation runs.Operation) (*desired, error) {
	kept, err := readRemembered(f.Inputs)
	if err != nil {
		return nil, err
	}
	c, err := r.choices(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	used := cmp.Or(c.own, c.current)
	credentials, err := r.secret(ctx, machine, kept.CredentialsSecret, "credentials")
	if err != nil {
		return nil, late(operation, err)
	}
	environment, files, err := kept.environment(used, data(credentials))
	if err != nil {
		return nil, late(operation, err)
	}
	variables, err := json.Marshal(kept.Variables)
	if err != nil {
		return nil, fmt.Errorf("writing the inputs that are kept with the state: %w", err)
	}
	wanted := &desired{
		module: used, fingerprint: fingerprintOf("remembered", string(f.Inputs), used.Digest()),
		credentialsSecret: kept.CredentialsSecret, keys: kept.Keys,
		inputs:  &render.Inputs{Variables: variables, Environment: environment, Files: files, Sensitive: kept.sensitive(data(credentials))},
		notices: c.notices(machine),
	}
	r.locate(ctx, wanted, data(credentials))
	return wanted, nil
}

// withSecrets takes the user data and the credentials of another: those that a lost run had may be what it was lost of.
func (d *desired) withSecrets(other *desired) error {
	var mine, theirs map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(d.inputs.Variables, &mine), json.Unmarshal(other.inputs.Variables, &theirs)); err != nil {
		return errors.New("reading the inputs that are kept with the state: they are no JSON object") // the decoder's words may show a value
	}
	mine[module.VariableUserData] = theirs[module.VariableUserData]
	variables, err := json.Marshal(mine)
	if err != nil {
		return fmt.Errorf("writing the inputs that are kept with the state: %w", err)
	}
	d.inputs.Variables, d.inputs.Environment, d.inputs.Files = variables, other.inputs.Environment, other.inputs.Files
	d.inputs.Sensitive = append(d.inputs.Sensitive, other.inputs.Sensitive...)
	d.credentialsSecret, d.keys = other.credentialsSecret, other.keys
	return nil
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// environment answers what the module's providers read, from variables and files.
func (r *remembered) environment(used *module.Module, credentials map[string][]byte) (environment, files map[string]string, err error) {
	environment, files, faults := module.ReadCredentials(r.Keys, credentials)
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("reading the credentials in the Secret %s: %s", r.CredentialsSecret, faults[0])
	}
	maps.Copy(environment, used.Constants())
	return environment, files, nil
}

// sensitive answers what must not be shown: values of the Secret that are not public, longer ones first.
func (r *remembered) sensitive(credentials map[string][]byte) []string {
	var values []string
	for name, value := range credentials {
		if slices.ContainsFunc(r.Keys, func(key v1alpha1.CredentialKey) bool { return key.Key == name && key.Public }) {
			continue
		}
		for _, text := range []string{string(value), strings.TrimSpace(string(value))} {
			if text != "" {
				values = append(values, text)
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(values)
}
