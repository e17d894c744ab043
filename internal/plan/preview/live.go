package preview

import "github.com/machine-iac/machine-iac-operator/internal/plan/diff"

// Live is what a cluster has of an object, and what the object would do to it.
type Live struct {
	// Exists reports that the object is in the cluster, where it asks for so many Replicas.
	Exists   bool  `json:"exists"`
	Replicas int32 `json:"replicas"`
	// Create and Delete are how many Machines a MachineSet would make and delete to have its replicas. DeletePolicy chooses which.
	Create       int    `json:"create"`
	Delete       int    `json:"delete"`
	DeletePolicy string `json:"deletePolicy,omitempty"`
	// Machines are those that exist: of a MachineSet, its own.
	Machines []*LiveMachine `json:"machines"`
}

// EditResult is what an edit would do to a Machine.
type EditResult string

// The results of edits.
const (
	// Unchanged: its instance is what the edit asks for.
	Unchanged EditResult = "Unchanged"
	// InPlace: its instance would be changed in place.
	InPlace EditResult = "InPlace"
	// NewMachine: the edit needs a new Machine, because an instance is never replaced.
	NewMachine EditResult = "NewMachine"
	// NotMade: it has no instance yet.
	NotMade EditResult = "NotMade"
	// Refused: the edit is not valid for the module.
	Refused EditResult = "Refused"
	// Gone: its instance is gone, or the Machine is being deleted, or has failed, so that an edit does nothing.
	Gone EditResult = "Gone"
	// Undecided: it is not known.
	Undecided EditResult = "Undecided"
)

// LiveMachine is a Machine that exists, and what an edit would do to it.
type LiveMachine struct {
	Name   string     `json:"name"`
	Phase  string     `json:"phase,omitempty"`
	Result EditResult `json:"result"`
	// Why gives the reason, if there is one.
	Why string `json:"why,omitempty"`
	// Module is the one that the change was planned with, name@sha256:digest.
	Module string `json:"module,omitempty"`
	// Fields are those of the providerSpec that differ from what the instance was brought to last. Of a [NewMachine], those that need it
	// are marked.
	Fields    []diff.Attribute `json:"fields,omitempty"`
	Resources []diff.Resource  `json:"resources,omitempty"`
	// Drift is how the instance differs from what was applied, where that was checked.
	Drift string   `json:"drift,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// LiveSummary counts the Machines that exist, and what would happen to them.
type LiveSummary struct {
	Machines   int `json:"machines"`
	Unchanged  int `json:"unchanged"`
	InPlace    int `json:"inPlace"`
	NewMachine int `json:"newMachine"`
	Other      int `json:"other"`
	Drifted    int `json:"drifted"`
	Create     int `json:"create"`
	Delete     int `json:"delete"`
}

// Attach adds to each set, in their order, what the cluster has of it, and counts again.
func (p *Preview) Attach(lives []*Live) {
	p.Summary.Live = &LiveSummary{}
	p.Summary.Add, p.Summary.Change, p.Summary.Destroy = 0, 0, 0
	for n, live := range lives {
		set := p.Sets[n]
		set.Live = live
		p.Summary.add(set, live.Create)
		p.Summary.Live.add(live)
	}
}

func (s *LiveSummary) add(live *Live) {
	s.Create, s.Delete = s.Create+live.Create, s.Delete+live.Delete
	for _, machine := range live.Machines {
		s.Machines++
		switch machine.Result {
		case Unchanged:
			s.Unchanged++
		case InPlace:
			s.InPlace++
		case NewMachine:
			s.NewMachine++
		default:
			s.Other++
		}
		if machine.Drift != "" {
			s.Drifted++
		}
	}
}

// changes reports whether anything has changed or would change.
func (s *LiveSummary) changes() bool {
	return s != nil && (s.Machines > s.Unchanged || s.Drifted+s.Create+s.Delete > 0)
}
