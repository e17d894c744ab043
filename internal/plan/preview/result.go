package preview

import "github.com/machine-iac/machine-iac-operator/internal/engine/tofu"

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
	// Live is about what a cluster has; nil where none was asked. Add, Change and Destroy are then those of the Machines that would be made.
	Live *LiveSummary `json:"live,omitempty"`
}

// Changes tells whether anything would change.
func (s Summary) Changes() bool { return s.Add+s.Change+s.Destroy > 0 || s.Live.changes() }

// Set is a MachineSet, or a Machine by itself, and the plan of one Machine that stands for all.
type Set struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Source    Source `json:"source"`
	Replicas  int32  `json:"replicas"`
	// Module is name@sha256:digest, ProviderSpec apiVersion and kind.
	Module       string `json:"module"`
	ProviderSpec string `json:"providerSpec"`
	// MachineName is the name of the Machine that is planned, or what is known of it where it is generated.
	MachineName string `json:"machineName"`
	Generated   bool   `json:"generated,omitempty"`

	InstanceType Value     `json:"instanceType"`
	Region       Value     `json:"region"`
	Zone         Value     `json:"zone"`
	Addresses    []Address `json:"addresses,omitempty"`
	// Size is nil where the module does not tell.
	Size *Size `json:"size,omitempty"`
	// Image names what the instance boots from; null where the module does not tell.
	Image Value `json:"image"`
	// Disks are those that the module tells.
	Disks   []Disk   `json:"disks,omitempty"`
	Secrets []Secret `json:"secrets,omitempty"`

	Resources []Resource `json:"resources"`
	Reads     []string   `json:"reads,omitempty"`
	Open      []string   `json:"open,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
	// Live is what a cluster has of it; nil where none was asked.
	Live *Live `json:"live,omitempty"`
}

// Source is where an object stands. Document and Line count from one.
type Source struct {
	File     string `json:"file"`
	Document int    `json:"document"`
	Line     int    `json:"line"`
}

// Address is one of the instance's. Type is empty where not even that is known.
type Address struct {
	Type    string `json:"type,omitempty"`
	Address Value  `json:"address"`
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
	Size Value `json:"size"`
	// Type is in the provider's words; empty where the module does not tell.
	Type string `json:"type,omitempty"`
}

// Secret is one that must be in the cluster.
type Secret struct {
	Name string `json:"name"`
	// Role is what it holds: "credentials" or "user data".
	Role string `json:"role"`
}

// Resource is a planned change of a resource.
type Resource struct {
	Address    string      `json:"address"`
	Type       string      `json:"type"`
	Action     tofu.Action `json:"action"`
	Attributes []Attribute `json:"attributes"`
	// Unsure says that the provider has not told what becomes of it.
	Unsure bool `json:"unsure,omitempty"`
}

// Attribute is one value inside of a resource.
type Attribute struct {
	// Path is names joined by dots, and indices and odd names in brackets.
	Path   string      `json:"path"`
	Action tofu.Action `json:"action"`
	// Before is set where the attribute changes or goes.
	Before *Value `json:"before,omitempty"`
	Value
	// Forces says that it is why a resource is replaced, or why a Machine needs a new one.
	Forces bool `json:"forces,omitempty"`
}

// Value is one that is known, or that is not, or that must not be shown. The zero value is null.
type Value struct {
	Value     any  `json:"value,omitempty"`
	Unknown   bool `json:"unknown,omitempty"`
	Sensitive bool `json:"sensitive,omitempty"`
}

// summarise counts what sets would change.
func summarise(sets []*Set) Summary {
	var summary Summary
	for _, set := range sets {
		if set.Kind == setKind {
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
		case tofu.ActionCreate:
			s.Add += machines
		case tofu.ActionUpdate:
			s.Change += machines
		case tofu.ActionDelete:
			s.Destroy += machines
		case tofu.ActionReplace:
			s.Add += machines
			s.Destroy += machines
		}
	}
}
