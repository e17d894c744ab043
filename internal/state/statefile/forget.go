package statefile

import (
	"encoding/json"
	"fmt"
)

// Forget returns a Terraform state without some resources, with the same serial. It returns other states, and those
// without such resources, unchanged.
func Forget(raw []byte, of func(Resource) bool) ([]byte, error) {
	parsed, err := Parse(raw)
	if err != nil || parsed.Format != "" {
		return raw, err
	}
	var file map[string]json.RawMessage
	var resources []json.RawMessage
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	if err := json.Unmarshal(file["resources"], &resources); err != nil {
		return nil, Malformed(describeJSON(err))
	}
	kept := make([]json.RawMessage, 0, len(resources))
	for i, resource := range resources {
		if !of(parsed.Resources[i]) {
			kept = append(kept, resource)
		}
	}
	if len(kept) == len(resources) {
		return raw, nil
	}
	if file["resources"], err = json.Marshal(kept); err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	return json.Marshal(file)
}
