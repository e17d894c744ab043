package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxOutput bounds the size of an output as JSON. The longest are a few dozen addresses.
const maxOutput = 64 << 10

// Outputs are the outputs of the module contract.
type Outputs struct {
	ProviderID    string
	InstanceID    string
	InstanceState string
	InstanceType  string
	Region        string
	Zone          string
	Addresses     []corev1.NodeAddress
	// Interruptible reports whether the infrastructure may reclaim the instance at any time.
	Interruptible bool
	// Outlives names what remains after the Machine is deleted.
	Outlives []string
}

// Outputs decodes the outputs in the state, which must exist. A null or missing output stays empty.
func (f *Facts) Outputs() (*Outputs, error) {
	o := &Outputs{}
	for name, field := range map[string]any{
		"provider_id":    &o.ProviderID,
		"instance_id":    &o.InstanceID,
		"instance_state": &o.InstanceState,
		"instance_type":  &o.InstanceType,
		"region":         &o.Region,
		"zone":           &o.Zone,
		"addresses":      &o.Addresses,
		"interruptible":  &o.Interruptible,
		"outlives":       &o.Outlives,
	} {
		output, ok := f.State.Outputs[name]
		if !ok || len(output.Value) == 0 {
			continue
		}
		if len(output.Value) > maxOutput {
			return nil, fmt.Errorf("reading module output %s: %d bytes exceed the limit of %d for a Machine's status; find "+
				"out who wrote the state", name, len(output.Value), maxOutput)
		}
		if err := json.Unmarshal(output.Value, field); err != nil {
			return nil, fmt.Errorf("reading module output %s: the type does not match the module contract: %w", name, err)
		}
	}
	o.Outlives = slices.DeleteFunc(o.Outlives, func(text string) bool { return text == "" })
	return o, nil
}

// PublicOutput returns an output in the state, which must exist. It returns nil if the output is
// null, missing, sensitive or too long.
func (f *Facts) PublicOutput(name string) (value any) {
	output := f.State.Outputs[name]
	if output.Sensitive || len(output.Value) > maxOutput || json.Unmarshal(output.Value, &value) != nil {
		return nil
	}
	return value
}

// Recorded returns, as JSON, the module's output "recorded" from the create. It is null without an
// instance or such an output.
func (f *Facts) Recorded() json.RawMessage {
	if f.HasInstance() {
		if output := f.State.Outputs["recorded"]; len(output.Value) > 0 {
			return output.Value
		}
	}
	return json.RawMessage("null")
}
