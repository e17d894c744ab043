package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// destroys returns why a state whose Machine is gone is to be destroyed, or "" if it is not.
func destroys(o record.Orphan, begun *record.Intent) string {
	switch {
	case begun != nil && begun.Operation == runs.Destroy || o.Mark != nil && o.Mark.Begun:
		return "the Machine is gone and its destroy had already begun"
	case o.Action == record.OrphanDestroy:
		return "the Machine is gone and annotation " + record.OrphanActionAnnotation + " on its state requests the destroy"
	case o.Mark != nil && !o.Mark.Destroy.IsZero():
		return fmt.Sprintf("the Machine has been gone since at least %s, and --orphan-policy=Delete requests the destroy",
			o.Mark.Since.UTC().Format(time.RFC3339))
	}
	return ""
}

// whyDestroy returns the reason for a destroy, for people.
func (f *Facts) whyDestroy() string {
	if f.Gone {
		return destroys(f.Orphan, f.Record.Intent)
	}
	return "the Machine is deleted"
}

// SetGone records that the Machine is gone. Confirmations that a person would make on the Machine
// are then read from its state.
func (f *Facts) SetGone(meta map[string]string) error {
	f.Gone, f.Confirmed = true, meta[strings.TrimPrefix(record.NoInstanceAnnotation, state.Prefix)]
	var err error
	f.Orphan, err = record.ReadOrphan(meta)
	return err
}
