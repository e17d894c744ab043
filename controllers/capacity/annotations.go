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
	// labelsAnnotation holds the labels of new Nodes, as key=value separated by commas. Others write it too.
	labelsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
)

// appliedLabelsAnnotation holds the pairs of labelsAnnotation that this controller has written.
const appliedLabelsAnnotation = "machine-iac.io/capacity-labels"

const architectureLabel = "kubernetes.io/arch"

// ownAnnotations are the annotations that this controller writes.
var ownAnnotations = []string{cpuAnnotation, memoryAnnotation, gpuAnnotation, labelsAnnotation, appliedLabelsAnnotation}

// annotate returns the annotations for a capacity. It does not change existing.
func annotate(existing map[string]string, size actuators.Capacity) map[string]string {
	wanted := maps.Clone(existing)
	if wanted == nil {
		wanted = map[string]string{}
	}
	wanted[cpuAnnotation] = strconv.FormatInt(size.CPU, 10)
	wanted[memoryAnnotation] = strconv.FormatInt(size.MemoryMiB, 10)
	wanted[gpuAnnotation] = strconv.FormatInt(size.GPU, 10)
	labels, applied := merge(existing[labelsAnnotation], existing[appliedLabelsAnnotation], labelsOf(size))
	setOrDelete(wanted, labelsAnnotation, labels)
	setOrDelete(wanted, appliedLabelsAnnotation, applied)
	return wanted
}

// labelsOf returns the labels that new Nodes will have.
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

// setOrDelete sets an annotation, or deletes it when the value is empty.
func setOrDelete(annotations map[string]string, key, value string) {
	if value != "" {
		annotations[key] = value
	} else {
		delete(annotations, key)
	}
}

// merge merges labels into a list of pairs. Pairs that are not in applied belong to others: they stay, and take precedence. Pairs keep their
// order; new ones follow, sorted. It returns the list, and the pairs in it that this controller has written.
func merge(text, applied string, labels map[string]string) (merged, newApplied string) {
	recorded := map[string]string{}
	for _, pair := range pairs(applied) {
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

// pairs returns the parts of a comma-separated list that are not empty.
func pairs(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
