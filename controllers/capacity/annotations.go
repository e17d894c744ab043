package capacity

import (
	"maps"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// The annotations that OpenShift's cluster autoscaler reads if upstream's are missing.
const (
	cpuAnnotation     = "machine.openshift.io/vCPU"
	memoryAnnotation  = "machine.openshift.io/memoryMb"
	gpuAnnotation     = "machine.openshift.io/GPU"
	maxPodsAnnotation = "machine.openshift.io/maxPods"
)

// ownAnnotations are the annotations that this controller reads or writes.
var ownAnnotations = []string{
	cpuAnnotation, memoryAnnotation, gpuAnnotation, maxPodsAnnotation,
	upstreamCPU, upstreamMemory, upstreamGPUCount, upstreamGPUType, upstreamMaxPods, upstreamDRADriver,
	labelsAnnotation, appliedLabelsAnnotation, taintsAnnotation, appliedTaintsAnnotation, appliedMaxPodsAnnotation,
	appliedSizeAnnotation,
}

// annotate returns the annotations for Machines of a size and a template. It does not change
// existing.
func annotate(existing map[string]string, size actuators.Capacity,
	template *machinev1beta1.MachineSpec) map[string]string {
	wanted := maps.Clone(existing)
	if wanted == nil {
		wanted = map[string]string{}
	}
	setSize(wanted, size)
	setMaxPods(wanted, existing)
	labels, applied := merge(existing[labelsAnnotation], existing[appliedLabelsAnnotation], labelsOf(size, template),
		labelID)
	setOrDelete(wanted, labelsAnnotation, labels)
	setOrDelete(wanted, appliedLabelsAnnotation, applied)
	taints, applied := merge(existing[taintsAnnotation], existing[appliedTaintsAnnotation], taintsOf(template), taintID)
	setOrDelete(wanted, taintsAnnotation, taints)
	setOrDelete(wanted, appliedTaintsAnnotation, applied)
	return wanted
}

// setOrDelete sets an annotation, or deletes it when the value is empty.
func setOrDelete(annotations map[string]string, key, value string) {
	if value != "" {
		annotations[key] = value
	} else {
		delete(annotations, key)
	}
}

// merge merges entries into a list that others also write, matching them by the ID that idOf
// returns. Entries that are not in applied belong to others: they stay and take precedence. Entries
// keep their order; new ones follow, sorted. merge returns the list, and the entries in it that
// this controller has written.
func merge(text, applied string, entries map[string]string, idOf func(string) string) (merged, newApplied string) {
	recorded := entriesOf(applied)
	isOurs := func(entry string) bool { return slices.Contains(recorded, entry) }
	given := map[string]bool{}
	for _, entry := range entriesOf(text) {
		if !isOurs(entry) {
			given[idOf(entry)] = true
		}
	}
	var kept, written []string
	for _, entry := range entriesOf(text) {
		id := idOf(entry)
		now, wanted := entries[id]
		switch {
		case !isOurs(entry):
			kept = append(kept, entry)
		case wanted && !given[id]:
			given[id] = true
			kept, written = append(kept, now), append(written, now)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if !given[id] {
			kept, written = append(kept, entries[id]), append(written, entries[id])
		}
	}
	slices.Sort(written)
	return strings.Join(kept, ","), strings.Join(written, ",")
}

// entriesOf returns the non-empty parts of a comma-separated list.
func entriesOf(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
