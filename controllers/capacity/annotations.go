package capacity

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// The annotations that a cluster autoscaler reads.
const (
	cpuAnnotation    = "machine.openshift.io/vCPU"
	memoryAnnotation = "machine.openshift.io/memoryMb"
	gpuAnnotation    = "machine.openshift.io/GPU"
	// labelsAnnotation holds labels of the Nodes to come, as key=value joined by commas. Others write into it too.
	labelsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
)

// recordAnnotation holds the pairs of labelsAnnotation that are from here.
const recordAnnotation = "machine-iac.io/capacity-labels"

const architectureLabel = "kubernetes.io/arch"

// ours are the annotations that are written here.
var ours = []string{cpuAnnotation, memoryAnnotation, gpuAnnotation, labelsAnnotation, recordAnnotation}

// annotate answers the annotations that a MachineSet should have whose Machines are of a size. It changes nothing.
func annotate(existing map[string]string, size actuators.Capacity) map[string]string {
	wanted := maps.Clone(existing)
	if wanted == nil {
		wanted = map[string]string{}
	}
	wanted[cpuAnnotation] = strconv.FormatInt(size.CPU, 10)
	wanted[memoryAnnotation] = strconv.FormatInt(size.MemoryMiB, 10)
	wanted[gpuAnnotation] = strconv.FormatInt(size.GPU, 10)
	labels, record := merge(existing[labelsAnnotation], existing[recordAnnotation], labelsOf(size))
	setOrDelete(wanted, labelsAnnotation, labels)
	setOrDelete(wanted, recordAnnotation, record)
	return wanted
}

// labelsOf answers the labels that the Nodes will have.
func labelsOf(size actuators.Capacity) map[string]string {
	labels := maps.Clone(size.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if size.Architecture != "" {
		labels[architectureLabel] = size.Architecture
	}
	return labels
}

// setOrDelete leaves no annotation that says nothing.
func setOrDelete(annotations map[string]string, key, value string) {
	if value != "" {
		annotations[key] = value
	} else {
		delete(annotations, key)
	}
}

// merge brings labels into a text of pairs. Pairs that the record does not have are somebody else's: they stay, and win. Pairs keep
// their places; new ones follow, sorted. It answers the text, and the record of the pairs in it that are from here.
func merge(text, record string, labels map[string]string) (merged, newRecord string) {
	recorded := map[string]string{}
	for _, pair := range pairs(record) {
		key, value, _ := strings.Cut(pair, "=")
		recorded[key] = value
	}
	isOurs := func(pair string) bool {
		key, value, ok := strings.Cut(pair, "=")
		was, found := recorded[key]
		return ok && found && was == value
	}
	given := map[string]bool{}
	for _, pair := range pairs(text) {
		if key, _, _ := strings.Cut(pair, "="); !isOurs(pair) {
			given[key] = true
		}
	}
	var kept, written []string
	for _, pair := range pairs(text) {
		key, _, _ := strings.Cut(pair, "=")
		value, wanted := labels[key]
		switch {
		case !isOurs(pair):
			kept = append(kept, pair)
		case wanted && !given[key]:
			given[key] = true
			kept, written = append(kept, key+"="+value), append(written, key+"="+value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if !given[key] {
			kept, written = append(kept, key+"="+labels[key]), append(written, key+"="+labels[key])
		}
	}
	slices.Sort(written)
	return strings.Join(kept, ","), strings.Join(written, ",")
}

// pairs answers the parts of a text that are not empty.
func pairs(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
