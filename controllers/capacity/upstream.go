package capacity

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// The annotations that record what this controller has written into the shared ones.
const (
	appliedLabelsAnnotation  = "machine-iac.io/capacity-labels"
	appliedTaintsAnnotation  = "machine-iac.io/capacity-taints"
	appliedMaxPodsAnnotation = "machine-iac.io/capacity-max-pods"
)

const architectureLabel = "kubernetes.io/arch"

// nvidia is the default GPU resource, as in OpenShift.
const nvidia = "nvidia.com/gpu"

// setUpstreamSize sets the size annotations. A value that differs from its counterpart of
// machine.openshift.io was set by someone else and stays.
func setUpstreamSize(wanted, existing map[string]string, size actuators.Capacity) {
	mib := func(n int64) *resource.Quantity { return resource.NewQuantity(n<<20, resource.BinarySI) }
	count := func(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
	follow(wanted, upstreamCPU, before(existing, cpuAnnotation, count), count(size.CPU))
	follow(wanted, upstreamMemory, before(existing, memoryAnnotation, mib), mib(size.MemoryMiB))
	gpus := before(existing, gpuAnnotation, count)
	follow(wanted, upstreamGPUCount, gpus, count(size.GPU))

	kind, found := existing[upstreamGPUType]
	_, dra := existing[upstreamDRADriver]
	derived := found && gpus != nil && kind == gpuType(gpus.Value())
	if !found && !dra || derived {
		wanted[upstreamGPUType] = gpuType(size.GPU)
	}
}

// gpuType returns the value of gpu-type for a number of GPUs, as OpenShift's
// cluster-autoscaler-operator writes it.
func gpuType(count int64) string {
	if count == 0 {
		return ""
	}
	return nvidia
}

// before reads the previous number of an annotation of machine.openshift.io, or nil.
func before(existing map[string]string, key string, quantity func(int64) *resource.Quantity) *resource.Quantity {
	number, err := strconv.ParseInt(existing[key], 10, 64)
	if err != nil {
		return nil
	}
	return quantity(number)
}

// longQuantity matches quantities that no one would write. The library would compute all digits of
// a large exponent.
var longQuantity = regexp.MustCompile(`^.{65}|[eE][+-]?[0-9]{3}`)

// follow sets an annotation to a quantity if it is missing or equal to the previous one. An equal
// quantity keeps its format.
func follow(wanted map[string]string, key string, before, now *resource.Quantity) {
	text := wanted[key]
	if text == "" {
		wanted[key] = now.String()
		return
	}
	if longQuantity.MatchString(text) {
		return // set by someone else
	}
	current, err := resource.ParseQuantity(text)
	if err == nil && before != nil && current.Cmp(*before) == 0 && current.Cmp(*now) != 0 {
		wanted[key] = now.String()
	}
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
