package offline

import (
	"context"
	"encoding/json"
	"fmt"
)

// suffix is a placeholder for what a MachineSet appends to the names of its Machines.
const suffix = "xxxxx"

// planNamed plans an input again if the engine refused it because the Machine's generated name is a resource key. It
// substitutes a name of that form. tried reports whether that was the reason.
func (m *module) planNamed(ctx context.Context, in Input, err error) (plan *Plan, tried bool, _ error) {
	if !in.Unknown.Name || in.Existing != nil || len(uncounted(err)) == 0 {
		return nil, false, nil
	}
	if in, err = named(in); err != nil {
		return nil, true, err
	}
	plans, err := m.plan(ctx, []Input{in})
	if err != nil {
		return nil, true, err
	}
	return plans[0], true, nil
}

func named(in Input) (Input, error) {
	var variables, machine map[string]json.RawMessage
	if err := json.Unmarshal(in.Variables, &variables); err != nil {
		return in, fmt.Errorf("reading the variables: %w", err)
	}
	if err := json.Unmarshal(variables["machine"], &machine); err != nil {
		return in, fmt.Errorf("reading the variable machine: %w", err)
	}
	var err error
	if machine["name"], err = json.Marshal(in.Unknown.NamePrefix + suffix); err != nil {
		return in, fmt.Errorf("writing the name: %w", err)
	}
	if variables["machine"], err = json.Marshal(machine); err != nil {
		return in, fmt.Errorf("writing the variable machine: %w", err)
	}
	if in.Variables, err = json.Marshal(variables); err != nil {
		return in, fmt.Errorf("writing the variables: %w", err)
	}
	in.Unknown.Name = false
	return in, nil
}
