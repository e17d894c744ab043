package lifecycle

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Outputs are the outputs of the module contract.
type Outputs struct {
	ProviderID    string
	InstanceID    string
	InstanceState string
	InstanceType  string
	Region        string
	Zone          string
	Addresses     []corev1.NodeAddress
	// Interruptible says that the infrastructure may take the instance away at any time.
	Interruptible bool
	// Outlives names what stays when the Machine is deleted.
	Outlives []string
}

// Outputs reads the outputs out of the state, which there must be. One that is null or missing stays empty.
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
		if err := json.Unmarshal(output.Value, field); err != nil {
			return nil, fmt.Errorf("reading the module's output %s: it is not of the type that the module contract wants: %w", name, err)
		}
	}
	o.Outlives = slices.DeleteFunc(o.Outlives, func(text string) bool { return text == "" })
	return o, nil
}
