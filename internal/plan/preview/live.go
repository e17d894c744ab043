package preview

import (
	"fmt"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
)

// Live is what a cluster has of an object, and what the object would do to it.
type Live struct {
	// Exists says that the object is in the cluster, where it asks for so many Replicas.
	Exists   bool  `json:"exists"`
	Replicas int32 `json:"replicas"`
	// Create and Delete are how many Machines a MachineSet would make and delete to have its replicas. DeletePolicy chooses which.
	Create       int    `json:"create"`
	Delete       int    `json:"delete"`
	DeletePolicy string `json:"deletePolicy,omitempty"`
	// Machines are those that exist: of a MachineSet, its own.
	Machines []*LiveMachine `json:"machines"`
}

// Verdict is what an edit would do to a Machine.
type Verdict string

// The verdicts.
const (
	// Unchanged: its instance is what the edit asks for.
	Unchanged Verdict = "Unchanged"
	// InPlace: its instance would be changed in place.
	InPlace Verdict = "InPlace"
	// NewMachine: the edit cannot be had in place, and an instance is never replaced.
	NewMachine Verdict = "NewMachine"
	// NotMade: it has no instance yet.
	NotMade Verdict = "NotMade"
	// Refused: the operator would not take the edit.
	Refused Verdict = "Refused"
	// Gone: its instance is gone, or the Machine is being deleted, or has failed, so that an edit does nothing.
	Gone Verdict = "Gone"
	// Undecided: it cannot be told.
	Undecided Verdict = "Undecided"
)

// LiveMachine is a Machine that exists, and what an edit would do to it.
type LiveMachine struct {
	Name    string  `json:"name"`
	Phase   string  `json:"phase,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Why says more, where there is more to say.
	Why string `json:"why,omitempty"`
	// Module is the one that the change was planned with, name@sha256:digest.
	Module string `json:"module,omitempty"`
	// Fields are those of the providerSpec that differ from what the instance was brought to last. Of a [NewMachine], those that need it
	// are marked.
	Fields    []Attribute `json:"fields,omitempty"`
	Resources []Resource  `json:"resources,omitempty"`
	// Drift says how the instance differs from what was applied, where that was looked at.
	Drift string   `json:"drift,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

// LiveSummary counts the Machines that exist, and what would become of them.
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

// Attach adds to each set, in their order, what the cluster has of it, and counts anew.
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
		switch machine.Verdict {
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

// changes tells whether anything is, or would be, other than it is.
func (s *LiveSummary) changes() bool {
	return s != nil && (s.Machines > s.Unchanged || s.Drifted+s.Create+s.Delete > 0)
}

// line is the summary in one line.
func (s *LiveSummary) line() string {
	parts := []string{fmt.Sprintf("%s as it is", verb(s.Unchanged, "stays", "stay"))}
	if s.Unchanged != 1 {
		parts[0] = strings.Replace(parts[0], "it is", "they are", 1)
	}
	parts = append(parts, fmt.Sprintf("%d would change in place", s.InPlace), verb(s.NewMachine, "needs a new Machine", "need a new Machine"))
	if s.Other > 0 {
		parts = append(parts, fmt.Sprintf("%d see above", s.Other))
	}
	text := fmt.Sprintf("%s %s: %s", count(s.Machines, "Machine"), map[bool]string{true: "exists", false: "exist"}[s.Machines == 1], strings.Join(parts, ", "))
	if s.Drifted > 0 {
		text += fmt.Sprintf("; %s drifted", verb(s.Drifted, "has", "have"))
	}
	return fmt.Sprintf("%s. %d would be made, %d deleted.", text, s.Create, s.Delete)
}

func verb(number int, one, more string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, more)
}

// Machine answers the Machine that is requested, or that the MachineSet would make.
func (r *Request) Machine() *machinev1beta1.Machine { return r.object.Machine }

// Title answers kind, namespace and name.
func (r *Request) Title() (kind, namespace, name string) {
	return r.set.Kind, r.set.Namespace, r.set.Name
}

// Replicas answers how many Machines are requested, and whether the manifest says so.
func (r *Request) Replicas() (replicas int32, given bool) {
	return r.object.Replicas, r.object.replicasGiven
}

// SetReplicas sets how many Machines are requested, for a manifest that does not say.
func (r *Request) SetReplicas(replicas int32) {
	r.object.Replicas, r.set.Replicas = replicas, replicas
}

// ResourcesOf answers the resources that a plan changes.
func ResourcesOf(plan *offline.Plan) []Resource {
	resources := make([]Resource, 0, len(plan.Resources))
	for _, one := range plan.Resources {
		resources = append(resources, Resource{Address: one.Address, Type: one.Type, Action: one.Action, Attributes: attributesOf(one), Unsure: one.Unsure})
	}
	return resources
}
