package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Reason says why a state was refused.
type Reason string

const (
	// ReasonCorrupt is a body that is not a state of version 4 with serial and lineage.
	ReasonCorrupt Reason = "Corrupt"
	// ReasonLineage is a state of another lineage than the stored one: it describes other infrastructure.
	ReasonLineage Reason = "Lineage"
	// ReasonSerial is a state older than the stored one, or of the same serial with other content.
	ReasonSerial Reason = "Serial"
)

// RefusedError says that a state was not stored because of what it is. Nothing was changed; a retry cannot help.
type RefusedError struct {
	// Reason is for code.
	Reason Reason
	// Detail is for people, and holds nothing of the state's content.
	Detail string
}

func (e *RefusedError) Error() string { return "refusing the state: " + e.Detail }

// Malformed returns the error of a body that is no state: a *RefusedError with ReasonCorrupt.
func Malformed(why string) error {
	return &RefusedError{Reason: ReasonCorrupt, Detail: "the body is no state of version 4: " + why}
}

// describeJSON says where the JSON breaks without quoting it: states hold secrets.
func describeJSON(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d", syntax.Offset)
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("field %q has the wrong type at byte %d", mistyped.Field, mistyped.Offset)
	}
	return "invalid JSON"
}
