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

// The annotations that upstream's cluster autoscaler reads, and OpenShift's before its own. Others write them too: people, and OpenShift's
// cluster-autoscaler-operator, which derives those that are missing from the ones of machine.openshift.io.
const (
	upstreamCPU      = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	upstreamMemory   = "capacity.cluster-autoscaler.kubernetes.io/memory"
	upstreamGPUCount = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
	upstreamGPUType  = "capacity.cluster-autoscaler.kubernetes.io/gpu-type"
	upstreamMaxPods  = "capacity.cluster-autoscaler.kubernetes.io/maxPods"
	// upstreamDRADriver is never written. Who has set it wants no gpu-type, which it is the alternative to.
	upstreamDRADriver = "capacity.cluster-autoscaler.kubernetes.io/dra-driver"
	// labelsAnnotation holds the labels of new Nodes, as key=value separated by commas.
	labelsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/labels"
	// taintsAnnotation holds the taints of new Nodes, as key=value:effect separated by commas.
	taintsAnnotation = "capacity.cluster-autoscaler.kubernetes.io/taints"
)

// The annotations that record what of these this controller has written.
const (
	appliedLabelsAnnotation  = "machine-iac.io/capacity-labels"
	appliedTaintsAnnotation  = "machine-iac.io/capacity-taints"
	appliedMaxPodsAnnotation = "machine-iac.io/capacity-max-pods"
)

const architectureLabel = "kubernetes.io/arch"

// nvidia is the resource that graphics processors are by default, as in OpenShift.
const nvidia = "nvidia.com/gpu"

// setUpstreamSize sets the annotations about the size. A value that says something else than the annotation of machine.openshift.io beside it
// was not derived from that: it is somebody's, and stays.
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

// gpuType returns what gpu-type is for a number of graphics processors, as OpenShift's cluster-autoscaler-operator writes it.
func gpuType(count int64) string {
	if count == 0 {
		return ""
	}
	return nvidia
}

// before reads the number that an annotation of machine.openshift.io had; nil when it has none.
func before(existing map[string]string, key string, quantity func(int64) *resource.Quantity) *resource.Quantity {
	number, err := strconv.ParseInt(existing[key], 10, 64)
	if err != nil {
		return nil
	}
	return quantity(number)
}

// longQuantity matches what is no quantity that anybody would write. Of a large exponent the library computes all digits.
var longQuantity = regexp.MustCompile(`^.{65}|[eE][+-]?[0-9]{3}`)

// follow sets an annotation to a quantity where there is none, or the one from before. An equal quantity keeps its form.
func follow(wanted map[string]string, key string, before, now *resource.Quantity) {
	text := wanted[key]
	if text == "" {
		wanted[key] = now.String()
		return
	}
	if longQuantity.MatchString(text) {
		return // nothing that was written here
	}
	current, err := resource.ParseQuantity(text)
	if err == nil && before != nil && current.Cmp(*before) == 0 && current.Cmp(*now) != 0 {
		wanted[key] = now.String()
	}
}

// setMaxPods copies the number of Pods, which nobody but a person knows, to where upstream's autoscaler reads it.
func setMaxPods(wanted, existing map[string]string) {
	given, current, applied := existing[maxPodsAnnotation], existing[upstreamMaxPods], existing[appliedMaxPodsAnnotation]
	if current != "" && current != applied {
		delete(wanted, appliedMaxPodsAnnotation) // somebody else's
		return
	}
	setOrDelete(wanted, upstreamMaxPods, given)
	setOrDelete(wanted, appliedMaxPodsAnnotation, given)
}

// labelsOf returns the labels that new Nodes will have, as entries by key: what the kubelet sets, and what is applied from the template.
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

// labelID returns what identifies a label in labelsAnnotation.
func labelID(entry string) string {
	key, _, _ := strings.Cut(entry, "=")
	return key
}

// taintsOf returns the taints that new Nodes will have, as entries by key and effect. Of several that have both in common the first counts, as
// on the Node.
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

// taintID returns what identifies a taint in taintsAnnotation.
func taintID(entry string) string {
	taint, effect, _ := strings.Cut(entry, ":")
	key, _, _ := strings.Cut(taint, "=")
	return key + ":" + effect
}
