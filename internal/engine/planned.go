package engine

import "encoding/json"

// PlannedObjects is what a plan contains beyond its report. Values may be secret.
type PlannedObjects struct {
	// Imported are the current objects that the plan would import, by resource address.
	Imported map[string]json.RawMessage
	// Changed are the names of the attributes that would change, by the address of a resource that
	// would be updated in place or replaced.
	Changed map[string][]string
	// Outputs are the values of outputs that are known and not sensitive.
	Outputs map[string]json.RawMessage
}
