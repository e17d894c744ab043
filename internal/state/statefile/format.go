package statefile

import "encoding/json"

// Formats of states.
const (
	// FormatTerraform is the format of Terraform and OpenTofu, whose states do not name it.
	FormatTerraform = ""
	// FormatPulumi is the format of a [Checkpoint].
	FormatPulumi = "pulumi"
)

// format reads the states of an engine.
type format struct {
	// parse reads a state. file is its decoded outer structure.
	parse func(raw []byte, file *stateFile) (*State, error)
	// instances lists the managed instances of a state.
	instances func(raw []byte) ([]instance, error)
	// objects returns the attributes of the managed resources by address. They may hold secrets.
	objects func(raw []byte) (map[string]json.RawMessage, error)
}

var formats = map[string]format{
	FormatTerraform: {parse: parseTerraform, instances: terraformInstances, objects: terraformAttributes},
	FormatPulumi:    {parse: parsePulumi, instances: checkpointInstances, objects: checkpointObjects},
}

// formatOf returns the format with the name, or Terraform's.
func formatOf(name string) format {
	if found, ok := formats[name]; ok {
		return found
	}
	return formats[FormatTerraform]
}
