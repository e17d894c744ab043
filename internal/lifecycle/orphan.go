package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// destroys returns why a state whose Machine is gone is to be destroyed; empty where it is not.
func destroys(o record.Orphan, begun *record.Intent) string {
	switch {
	case begun != nil && begun.Operation == runs.Destroy || o.Mark != nil && o.Mark.Begun:
		return "the Machine is gone, and its destroy had begun"
	case o.Action == record.OrphanDestroy:
		return "the Machine is gone, and annotation " + record.OrphanActionAnnotation + " on its state asks for the destroy"
	case o.Mark != nil && !o.Mark.Destroy.IsZero():
		return fmt.Sprintf("the Machine is gone since %s or longer, and --orphan-policy=Delete asks for the destroy", o.Mark.Since.UTC().Format(time.RFC3339))
	}
	return ""
}

// whyDestroy returns the reason of a destroy, for people.
func (f *Facts) whyDestroy() string {
	if f.Gone {
		return destroys(f.Orphan, f.Record.Intent)
	}
	return "the Machine is deleted"
}

// SetGone says that there is no Machine of this UID any more. What a person would confirm on the Machine is confirmed on its state then.
func (f *Facts) SetGone(meta map[string]string) error {
	f.Gone, f.Confirmed = true, meta[strings.TrimPrefix(record.NoInstanceAnnotation, state.Prefix)]
	var err error
	f.Orphan, err = record.ReadOrphan(meta)
	return err
}
