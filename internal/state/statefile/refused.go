package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Reason is why a state was rejected.
type Reason string

const (
	// ReasonCorrupt means that the body is not a state of version 4 with serial and lineage.
	ReasonCorrupt Reason = "Corrupt"
	// ReasonLineage means that the state has another lineage: it describes other infrastructure.
	ReasonLineage Reason = "Lineage"
	// ReasonSerial means that the state is older than the stored one, or has the same serial and different content.
	ReasonSerial Reason = "Serial"
)

// RefusedError means that a state was rejected because of its content. Nothing was changed; retrying does not help.
type RefusedError struct {
	// Reason is for code.
	Reason Reason
	// Detail is for people. It does not quote the state.
	Detail string
}

func (e *RefusedError) Error() string { return "refusing the state: " + e.Detail }

// Malformed returns a *RefusedError with ReasonCorrupt.
func Malformed(why string) error {
	return &RefusedError{Reason: ReasonCorrupt, Detail: "the body is no state of version 4: " + why}
}

// describeJSON locates a JSON error without quoting the state, which holds secrets.
func describeJSON(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("invalid JSON at byte %d", syntax.Offset)
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("field %q has the wrong type at byte %d", mistyped.Field, mistyped.Offset)
	}
	return "invalid JSON"
}
