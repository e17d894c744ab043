package iac

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"

	corev1 "k8s.io/api/core/v1"
)

// outputs are the outputs of the module contract.
type outputs struct {
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

// readOutputs reads the outputs out of a state. One that is null or missing stays empty.
func readOutputs(s *statefile.State) (*outputs, error) {
	o := &outputs{}
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
		output, ok := s.Outputs[name]
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
