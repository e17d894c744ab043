package capacity

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// The annotations that upstream's cluster autoscaler reads, and OpenShift's before its own. Others
// also write them: people, and OpenShift's cluster-autoscaler-operator, which derives missing ones
// from those of machine.openshift.io.
const (
	upstreamCPU      = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	upstreamMemory   = "capacity.cluster-autoscaler.kubernetes.io/memory"
	upstreamGPUCount = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
	upstreamGPUType  = "capacity.cluster-autoscaler.kubernetes.io/gpu-type"
	upstreamMaxPods  = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	// upstreamDRADriver is never written. It is the alternative to gpu-type, so no gpu-type is set
	// beside it.
	upstreamDRADriver = "capacity.cluster-autoscaler.kubernetes.io/dra-driver"
	// labelsAnnotation holds the labels of new Nodes, as key=value separated by commas.
	labelsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
	// taintsAnnotation holds the taints of new Nodes, as key=value:effect separated by commas.
	taintsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// The annotations that record what this controller has written. Other values belong to others.
const (
	appliedLabelsAnnotation  = "machine-iac.io/capacity-labels"
	appliedTaintsAnnotation  = "machine-iac.io/capacity-taints"
	appliedMaxPodsAnnotation = "machine-iac.io/capacity-max-pods"
	appliedSizeAnnotation    = "machine-iac.io/capacity-size"
)

const architectureLabel = "kubernetes.io/arch"

// nvidia is the default GPU resource, as in OpenShift.
const nvidia = "nvidia.com/gpu"

// setSize sets the size annotations, and records those that it set. A different value was set by
// someone else: it stays, and upstream's annotation follows it.
func setSize(annotations map[string]string, size actuators.Capacity) {
	w := &sizeWriter{annotations: annotations, recorded: entriesOf(annotations[appliedSizeAnnotation])}
	w.set(upstreamCPU, w.set(cpuAnnotation, *resource.NewQuantity(size.CPU, resource.DecimalSI)))
	memory := w.set(memoryAnnotation, *resource.NewQuantity(size.MemoryMiB, resource.DecimalSI))
	memory.Mul(1 << 20)
	memory.Format = resource.BinarySI
	w.set(upstreamMemory, memory)
	gpus := w.set(gpuAnnotation, *resource.NewQuantity(size.GPU, resource.DecimalSI))
	w.set(upstreamGPUCount, gpus)

	kind := "" // without GPUs, as OpenShift's cluster-autoscaler-operator writes it
	if !gpus.IsZero() {
		kind = nvidia
	}
	current, found := annotations[upstreamGPUType]
	_, dra := annotations[upstreamDRADriver]
	if !found && !dra || found && (current == kind || w.wrote(upstreamGPUType)) {
		w.write(upstreamGPUType, kind)
	}
	annotations[appliedSizeAnnotation] = strings.Join(w.written, ",")
}

// sizeWriter writes size annotations.
type sizeWriter struct {
	annotations map[string]string
	// recorded are the earlier entries of appliedSizeAnnotation, and written the new ones.
	recorded, written []string
}

// longQuantity matches quantities that no one would write. The library would compute all digits of
// a large exponent.
var longQuantity = regexp.MustCompile(`^.{65}|[eE][+-]?[0-9]{3}`)

// set sets an annotation unless someone else set it, and returns its quantity. An equal quantity
// keeps its format.
func (w *sizeWriter) set(key string, now resource.Quantity) resource.Quantity {
	text := w.annotations[key]
	var current resource.Quantity
	err := resource.ErrNumeric
	if !longQuantity.MatchString(text) {
		current, err = resource.ParseQuantity(text)
	}
	switch {
	case err == nil && current.Cmp(now) == 0:
		w.write(key, text)
	case text == "" || w.wrote(key):
		w.write(key, now.String())
	case err == nil && current.Sign() >= 0:
		return current
	}
	return now
}

// wrote reports whether the controller wrote an annotation's current value.
func (w *sizeWriter) wrote(key string) bool {
	return slices.Contains(w.recorded, sizeEntry(key, w.annotations[key]))
}

func (w *sizeWriter) write(key, value string) {
	w.annotations[key] = value
	w.written = append(w.written, sizeEntry(key, value))
}

// sizeEntry returns an entry of appliedSizeAnnotation: the annotation's name without its prefix, and
// its value.
func sizeEntry(key, value string) string {
	_, name, _ := strings.Cut(key, "/")
	return name + "=" + value
}

// setMaxPods copies the number of Pods, which only a person can set, to the annotation of
// upstream's autoscaler.
func setMaxPods(wanted, existing map[string]string) {
	given, current, applied := existing[maxPodsAnnotation], existing[upstreamMaxPods], existing[appliedMaxPodsAnnotation]
	if current != "" && current != applied {
		delete(wanted, appliedMaxPodsAnnotation) // set by someone else
		return
	}
	setOrDelete(wanted, upstreamMaxPods, given)
	setOrDelete(wanted, appliedMaxPodsAnnotation, given)
}

// labelsOf returns the labels of new Nodes as entries by key: those set by the kubelet and those of
// the template.
func labelsOf(size actuators.Capacity, template *machinev1beta1.MachineSpec) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, size.Labels)
	if size.Architecture != "" {
		labels[architectureLabel] = size.Architecture
	}
	maps.Copy(labels, template.Labels)
	entries := map[string]string{}
	for key, value := range labels {
		if len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) == 0 {
			entries[key] = key + "=" + value
		}
	}
	return entries
}

// labelID returns the ID of an entry of labelsAnnotation.
func labelID(entry string) string {
	key, _, _ := strings.Cut(entry, "=")
	return key
}

// taintsOf returns the taints of new Nodes as entries by key and effect. As on the Node, the first
// of several equal ones wins.
func taintsOf(template *machinev1beta1.MachineSpec) map[string]string {
	entries := map[string]string{}
	for _, taint := range slices.Backward(template.Taints) {
		if len(validation.IsQualifiedName(taint.Key))+len(validation.IsValidLabelValue(taint.Value)) == 0 {
			entry := taintEntry(taint)
			entries[taintID(entry)] = entry
		}
	}
	return entries
}

func taintEntry(taint corev1.Taint) string {
	if taint.Value == "" {
		return taint.Key + ":" + string(taint.Effect)
	}
	return taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
}

// taintID returns the ID of an entry of taintsAnnotation.
func taintID(entry string) string {
	taint, effect, _ := strings.Cut(entry, ":")
	key, _, _ := strings.Cut(taint, "=")
	return key + ":" + effect
}
