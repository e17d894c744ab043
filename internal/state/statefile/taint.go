package statefile

import (
	"encoding/json"
	"fmt"
)

// SetTainted returns a Terraform state with the instances of some resources tainted or untainted, under the next
// serial, as `taint` and `untaint` do. It keeps deposed instances as they are, and may reorder fields.
func SetTainted(raw []byte, tainted bool, of func(Resource) bool) ([]byte, error) {
	parsed, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	if parsed.Format != "" {
		return nil, fmt.Errorf("a state of format %q has nothing tainted", parsed.Format)
	}
	var file map[string]json.RawMessage
	var resources []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	if err := json.Unmarshal(file["resources"], &resources); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	for i, resource := range resources {
		if !of(parsed.Resources[i]) {
			continue
		}
		if resource["instances"], err = setStatus(resource["instances"], tainted); err != nil {
			return nil, err
		}
	}
	if file["resources"], err = json.Marshal(resources); err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	changed, err := json.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	return WithSerial(changed, parsed.Serial+1)
}

// setStatus sets the status of the instances of a resource.
func setStatus(raw json.RawMessage, tainted bool) (json.RawMessage, error) {
	var instances []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &instances); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	for _, instance := range instances {
		if instance["deposed"] != nil {
			continue
		}
		delete(instance, "status")
		if tainted {
			instance["status"] = json.RawMessage(`"tainted"`)
		}
	}
	return json.Marshal(instances)
}
