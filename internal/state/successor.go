package state

import (
	"bytes"
	"fmt"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// checkSuccessor returns an error unless next may follow the stored state. same means that it is
// the stored state.
func checkSuccessor(stored *Snapshot, next *statefile.State, raw []byte) (same bool, err error) {
	if stored.Raw == nil {
		return false, nil
	}
	switch {
	case next.Lineage != stored.Lineage:
		return false, &statefile.RefusedError{Reason: statefile.ReasonLineage, Detail: fmt.Sprintf(
			"its lineage %q differs from the stored lineage %q: it describes other infrastructure", next.Lineage,
			stored.Lineage)}
	case next.Serial < stored.Serial:
		return false, &statefile.RefusedError{Reason: statefile.ReasonSerial, Detail: fmt.Sprintf(
			"its serial %d is older than the stored serial %d", next.Serial, stored.Serial)}
	case next.Serial > stored.Serial:
		return false, nil
	case bytes.Equal(raw, stored.Raw):
		return true, nil
	}
	return false, &statefile.RefusedError{Reason: statefile.ReasonSerial, Detail: fmt.Sprintf(
		"its content differs from the stored state, although both have serial %d", next.Serial)}
}
