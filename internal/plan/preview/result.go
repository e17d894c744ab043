package preview

import (
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/plan/diff"
	"github.com/machine-iac/machine-iac-operator/internal/plan/manifest"
)

// FormatVersion is the version of [Preview] as it is printed. It changes when a field goes or changes its meaning.
const FormatVersion = "1"

// Preview is what would happen, as it is printed for machines. docs/preview.md describes it.
type Preview struct {
	FormatVersion string  `json:"formatVersion"`
	Engine        string  `json:"engine,omitempty"`
	Sets          []*Set  `json:"machineSets"`
	Summary       Summary `json:"summary"`
}

// Summary counts, each replica by itself.
type Summary struct {
	Sets     int `json:"machineSets"`
	Machines int `json:"machines"`
	Add      int `json:"add"`
	Change   int `json:"change"`
	Destroy  int `json:"destroy"`
	// Live is what a cluster has; nil where none was read. Add, Change and Destroy are then those of the Machines that would be created.
	Live *LiveSummary `json:"live,omitempty"`
}

// Changes reports whether anything would change.
func (s Summary) Changes() bool { return s.Add+s.Change+s.Destroy > 0 || s.Live.changes() }

// Set is a MachineSet, or a Machine by itself, and the plan of one Machine that represents all.
type Set struct {
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Source    manifest.Source `json:"source"`
	Replicas  int32           `json:"replicas"`
	// Module is name@sha256:digest, ProviderSpec apiVersion and kind.
	Module       string `json:"module"`
	ProviderSpec string `json:"providerSpec"`
	// MachineName is the name of the Machine that is planned, or what is known of it where it is generated.
	MachineName string `json:"machineName"`
	Generated   bool   `json:"generated,omitempty"`

	InstanceType diff.Value `json:"instanceType"`
	Region       diff.Value `json:"region"`
	Zone         diff.Value `json:"zone"`
	Addresses    []Address  `json:"addresses,omitempty"`
	// Size is nil where the module does not define it.
	Size *Size `json:"size,omitempty"`
	// Image names what the instance boots from; null where the module does not define it.
	Image   diff.Value        `json:"image"`
	Disks   []Disk            `json:"disks,omitempty"`
	Secrets []manifest.Secret `json:"secrets,omitempty"`

	Resources []diff.Resource `json:"resources"`
	Reads     []string        `json:"reads,omitempty"`
	Open      []string        `json:"open,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
	// Live is what a cluster has of it; nil where none was read.
	Live *Live `json:"live,omitempty"`
}

// Address is one of the instance's. Type is empty where not even that is known.
type Address struct {
	Type    string     `json:"type,omitempty"`
	Address diff.Value `json:"address"`
}

// Size is what an instance offers.
type Size struct {
	CPU          int64  `json:"cpu"`
	MemoryMiB    int64  `json:"memoryMiB"`
	GPU          int64  `json:"gpu"`
	Architecture string `json:"architecture"`
}

// Disk is one of the instance's.
type Disk struct {
	// Size is a Kubernetes quantity.
	Size diff.Value `json:"size"`
	// Type is the provider's name for it; empty where the module does not define it.
	Type string `json:"type,omitempty"`
}

// Summarise counts what sets would change.
func Summarise(sets []*Set) Summary {
	var summary Summary
	for _, set := range sets {
		if set.Kind == manifest.KindMachineSet {
			summary.Sets++
		}
		summary.Machines += int(set.Replicas)
		summary.add(set, int(set.Replicas))
	}
	return summary
}

// add counts the resources of so many Machines.
func (s *Summary) add(set *Set, machines int) {
	for _, resource := range set.Resources {
		switch resource.Action {
		case engine.ActionCreate:
			s.Add += machines
		case engine.ActionUpdate:
			s.Change += machines
		case engine.ActionDelete:
			s.Destroy += machines
		case engine.ActionReplace:
			s.Add += machines
			s.Destroy += machines
		}
	}
}
