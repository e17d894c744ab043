package preview

import (
	"github.com/machine-iac/machine-iac-operator/internal/engine"
)

// FormatVersion is the version of the printed [Preview]. It changes when a field is removed or changes its meaning.
const FormatVersion = "1"

// Preview is the printed result. docs/reference/previews.md describes it.
type Preview struct {
	FormatVersion string  `json:"formatVersion"`
	Engine        string  `json:"engine,omitempty"`
	Sets          []*Set  `json:"machineSets"`
	Summary       Summary `json:"summary"`
}

// Summary counts changed resources over all replicas.
type Summary struct {
	Deployments int `json:"machineDeployments,omitempty"`
	Sets        int `json:"machineSets"`
	Machines    int `json:"machines"`
	Add         int `json:"add"`
	Change      int `json:"change"`
	Destroy     int `json:"destroy"`
	// Live is nil unless a cluster was read. With it, Add, Change and Destroy only count Machines to be created.
	Live *LiveSummary `json:"live,omitempty"`
}

// Changes reports whether anything would change.
func (s Summary) Changes() bool { return s.Add+s.Change+s.Destroy > 0 || s.Live.changes() }

// Set is a MachineDeployment, a MachineSet or a standalone Machine, with the plan of one Machine that represents all.
type Set struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Source    Source `json:"source"`
	Replicas  int32  `json:"replicas"`
	// Module is name@sha256:digest; ProviderSpec is apiVersion and kind.
	Module       string `json:"module"`
	ProviderSpec string `json:"providerSpec"`
	// MachineName is the planned Machine's name, or the known part of a generated name.
	MachineName string `json:"machineName"`
	Generated   bool   `json:"generated,omitempty"`

	InstanceType Value     `json:"instanceType"`
	Region       Value     `json:"region"`
	Zone         Value     `json:"zone"`
	Addresses    []Address `json:"addresses,omitempty"`
	// Size is nil if the module does not define it.
	Size *Size `json:"size,omitempty"`
	// Image is what the instance boots from; null if the module does not define it.
	Image   Value    `json:"image"`
	Disks   []Disk   `json:"disks,omitempty"`
	Secrets []Secret `json:"secrets,omitempty"`

	Resources []Resource `json:"resources"`
	Reads     []string   `json:"reads,omitempty"`
	Open      []string   `json:"open,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	// Live is nil unless a cluster was read.
	Live *Live `json:"live,omitempty"`
}

// Address is an address of the instance. Type is empty if unknown.
type Address struct {
	Type    string `json:"type,omitempty"`
	Address Value  `json:"address"`
}

// Size is the instance's capacity.
type Size struct {
	CPU          int64  `json:"cpu"`
	MemoryMiB    int64  `json:"memoryMiB"`
	GPU          int64  `json:"gpu"`
	Architecture string `json:"architecture"`
}

// Disk is a disk of the instance.
type Disk struct {
	// Size is a Kubernetes quantity.
	Size Value `json:"size"`
	// Type is the provider's name for the disk type; empty if the module does not define it.
	Type string `json:"type,omitempty"`
}

// Summarise counts the changes of the sets.
func Summarise(sets []*Set) Summary {
	var summary Summary
	for _, set := range sets {
		switch set.Kind {
		case KindMachineDeployment:
			summary.Deployments++
		case KindMachineSet:
			summary.Sets++
		}
		summary.Machines += int(set.Replicas)
		summary.add(set, int(set.Replicas))
	}
	return summary
}

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
