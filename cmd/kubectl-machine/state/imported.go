package state

import (
	"cmp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// importedState is a state of a backup, and what has become of it, or would.
type importedState struct {
	Namespace string `json:"namespace"`
	// Machine is the name of the Machine that the state is for, UID its UID; empty where there is
	// none.
	Machine string    `json:"machine"`
	UID     types.UID `json:"machineUID,omitempty"`
	// From is the UID of the Machine that the state was exported of.
	From types.UID `json:"fromUID"`
	// Serial is that of the state, Stored that of the one that was there; zero for none.
	Serial uint64 `json:"serial"`
	Stored uint64 `json:"storedSerial,omitempty"`
	Result string `json:"result"`
	// Reason says why, Notes what else is to be known.
	Reason string   `json:"reason,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// importList is what has become of the states of a backup.
type importList struct {
	Items []importedState `json:"items"`
	// AllNamespaces says that they may be of several.
	AllNamespaces bool `json:"-"`
}

// Objects implements print.Report.
func (l *importList) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for i := range l.Items {
		objects = append(objects, print.MachineReference(l.Items[i].Namespace, l.Items[i].Machine))
	}
	return objects
}

// WithNamespaces implements print.Table.
func (l *importList) WithNamespaces() bool { return l.AllNamespaces }

// Rows implements print.Table.
func (l *importList) Rows(bool) [][]string {
	rows := [][]string{{"MACHINE", "SERIAL", "STORED", "RESULT", "DETAILS"}}
	for i := range l.Items {
		one := &l.Items[i]
		stored := "-"
		if one.Stored > 0 {
			stored = strconv.FormatUint(one.Stored, 10)
		}
		var details []string
		if one.Reason != "" {
			details = append(details, one.Reason)
		}
		details = append(details, one.Notes...)
		rows = append(rows, []string{cmp.Or(one.Machine, "-"), strconv.FormatUint(one.Serial, 10), stored, one.Result,
			strings.Join(details, "; ")})
	}
	return rows
}
