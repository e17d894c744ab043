package preview

// Live is an object's counterpart in a cluster, and what the object would do to it.
type Live struct {
	// Exists reports whether the object is in the cluster, with Replicas there.
	Exists   bool  `json:"exists"`
	Replicas int32 `json:"replicas"`
	// Create and Delete are the numbers of Machines that a MachineSet would create and delete, for its replicas.
	// DeletePolicy chooses the latter.
	Create       int    `json:"create"`
	Delete       int    `json:"delete"`
	DeletePolicy string `json:"deletePolicy,omitempty"`
	// Machines are the existing Machine, or those of the MachineSet or MachineDeployment.
	Machines []*LiveMachine `json:"machines"`
	// Rollout is nil for other kinds than MachineDeployment.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// made returns how many Machines would be created, for replicas and in the place of others.
func (l *Live) made() int {
	if l.Rollout == nil {
		return l.Create
	}
	return l.Create + l.Rollout.Replaced
}

// EditResult is what an edit would do to a Machine.
type EditResult string

// Results of edits.
const (
	// Unchanged: the instance is up to date.
	Unchanged EditResult = "Unchanged"
	// InPlace: the instance would be changed in place.
	InPlace EditResult = "InPlace"
	// NewMachine: the edit needs a new Machine, because an instance is never replaced.
	NewMachine EditResult = "NewMachine"
	// Replaced: a rollout would replace the Machine.
	Replaced EditResult = "Replaced"
	// NotMade: the Machine has no instance yet.
	NotMade EditResult = "NotMade"
	// Refused: the edit is not valid for the module.
	Refused EditResult = "Refused"
	// Gone: the edit has no effect, because the instance is gone, or the Machine is being deleted or has failed.
	Gone EditResult = "Gone"
	// Undecided: the result is unknown.
	Undecided EditResult = "Undecided"
)

// LiveMachine is an existing Machine, and what an edit would do to it.
type LiveMachine struct {
	Name   string     `json:"name"`
	Phase  string     `json:"phase,omitempty"`
	Result EditResult `json:"result"`
	// MachineSet and Revision are those of a MachineDeployment's Machine.
	MachineSet string `json:"machineSet,omitempty"`
	Revision   string `json:"revision,omitempty"`
	// PlannedAs names the Machine whose plan stands for this one, because both have the same providerSpec.
	PlannedAs string `json:"plannedAs,omitempty"`
	// Why is the reason, if any.
	Why string `json:"why,omitempty"`
	// Module is the module that planned the change, as name@sha256:digest.
	Module string `json:"module,omitempty"`
	// Fields are the fields of the providerSpec that differ from those last applied. For a [NewMachine] and what a plan
	// says must be [Replaced], the fields that force it are marked.
	Fields    []Attribute `json:"fields,omitempty"`
	Resources []Resource  `json:"resources,omitempty"`
	// Drift is how the instance differs from what was applied, if checked.
	Drift    string   `json:"drift,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// LiveSummary counts existing Machines and their changes.
type LiveSummary struct {
	Machines   int `json:"machines"`
	Unchanged  int `json:"unchanged"`
	InPlace    int `json:"inPlace"`
	NewMachine int `json:"newMachine"`
	Replaced   int `json:"replaced,omitempty"`
	Other      int `json:"other"`
	Drifted    int `json:"drifted"`
	Create     int `json:"create"`
	Delete     int `json:"delete"`
}

// Attach adds to each set its counterpart in the cluster, in order, and updates the summary.
func (p *Preview) Attach(lives []*Live) {
	p.Summary.Live = &LiveSummary{}
	p.Summary.Add, p.Summary.Change, p.Summary.Destroy = 0, 0, 0
	for n, live := range lives {
		set := p.Sets[n]
		set.Live = live
		set.rollOut()
		p.Summary.add(set, live.made())
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
		case Replaced:
			s.Replaced++
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
