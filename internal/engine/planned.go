package engine

import "encoding/json"

// PlannedObjects is what a plan holds beyond its report. Values may hold secrets.
type PlannedObjects struct {
	// Imported are the objects that the plan would bring into the state, as they are now, by the address of the resource.
	Imported map[string]json.RawMessage
	// Changed are the names of the attributes that would change, by the address of a resource that would be updated in place or replaced.
	Changed map[string][]string
	// Outputs are the values of outputs that are known and not sensitive.
	Outputs map[string]json.RawMessage
}
