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
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// attachedInputs is the attachment of a state that holds its remembered inputs.
const attachedInputs = "inputs"

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

// attachments answers what a run keeps with the state of what it was asked for. Inputs that have no room are not kept, nor are older ones.
func (t *task) attachments() state.Attachments {
	packed, err := t.wanted.remember()
	if err != nil || packed == nil {
		t.actuator.logger.Info("The inputs of a Machine are not kept with its state; it can be deleted only while its providerSpec can be used",
			"Machine", t.machine.Namespace+"/"+t.machine.Name, "error", err)
		return state.Attachments{attachedInputs: nil}
	}
	attached := state.Attachments{attachedInputs: packed}
	if len(packed) > state.MaxAttachmentBytes-maxPackedTranscript {
		attached[attachedOutput] = nil
	}
	return attached
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

// desireLast renders a Machine for its destroy, from what is remembered where its providerSpec cannot be used.
func (a *Actuator) desireLast(ctx context.Context, machine *machinev1beta1.Machine, f *facts) (*desired, error) {
	wanted, err := a.desireOwn(ctx, machine, f, runs.Destroy)
	if !actuators.IsInvalidConfiguration(err) || f.inputs == nil {
		return wanted, err
	}
	kept, keptErr := a.desireRemembered(ctx, machine, f, err)
	if _, told := errors.AsType[*actuators.MachineError](keptErr); keptErr == nil || told {
		return kept, keptErr
	}
	return nil, fmt.Errorf("%w; nor can what the instance was made with be used: %w", err, keptErr)
}

// desireRemembered answers what removes an instance whose providerSpec cannot be used any more, for the reason in cause: the inputs that it
// was made with, and the credentials of now.
func (a *Actuator) desireRemembered(ctx context.Context, machine *machinev1beta1.Machine, f *facts, cause error) (*desired, error) {
	kept, err := readRemembered(f.inputs)
	if err != nil {
		return nil, err
	}
	c, err := a.choices(ctx, machine, f)
	if err != nil {
		return nil, err
	}
	used := cmp.Or(c.own, c.current)
	credentials, err := a.secret(ctx, machine, kept.CredentialsSecret, "credentials")
	if err != nil {
		return nil, late(runs.Destroy, err)
	}
	environment, files, err := kept.environment(used, data(credentials))
	if err != nil {
		return nil, late(runs.Destroy, err)
	}
	variables, err := json.Marshal(kept.Variables)
	if err != nil {
		return nil, fmt.Errorf("writing the inputs that are kept with the state: %w", err)
	}
	return &desired{
		module: used, fingerprint: fingerprintOf("remembered", string(f.inputs), used.Digest()),
		inputs:  &render.Inputs{Variables: variables, Environment: environment, Files: files, Sensitive: kept.sensitive(data(credentials))},
		notices: append(c.notices(machine), inputsRemembered(machine, cause)),
	}, nil
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
