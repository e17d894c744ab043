package capacity

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestMerge(t *testing.T) {
	amd := map[string]string{"kubernetes.io/arch": "amd64"}
	const arch = "kubernetes.io/arch=amd64"
	tcs := map[string]struct {
		text, record string
		labels       map[string]string
		want         string
		wantRecord   string
	}{
		"nothing there yet":                                {"", "", amd, arch, arch},
		"pairs of others stay, in their order":             {"z=1,a=2", "", amd, "z=1,a=2," + arch, arch},
		"a pair of somebody else wins over the estimate":   {"kubernetes.io/arch=arm64", "", amd, "kubernetes.io/arch=arm64", ""},
		"an equal pair of somebody else stays theirs":      {arch, "", amd, arch, ""},
		"what is there is not written again":               {"z=1," + arch + ",a=2", arch, amd, "z=1," + arch + ",a=2", arch},
		"what was written for another type is fixed":       {"z=1,kubernetes.io/arch=arm64,a=2", "kubernetes.io/arch=arm64", amd, "z=1," + arch + ",a=2", arch},
		"what was changed by hand is theirs from then on":  {"kubernetes.io/arch=s390x", "kubernetes.io/arch=arm64", amd, "kubernetes.io/arch=s390x", ""},
		"what was added by hand beside ours wins":          {arch + ",kubernetes.io/arch=arm64", arch, amd, "kubernetes.io/arch=arm64", ""},
		"what was taken off comes back":                    {"z=1", arch, amd, "z=1," + arch, arch},
		"what is no longer true goes":                      {"z=1," + arch, arch, nil, "z=1", ""},
		"the last pair goes too":                           {arch, arch, nil, "", ""},
		"new pairs are sorted, so that passes are alike":   {"", "", map[string]string{"c": "3", "a": "1", "b": "2"}, "a=1,b=2,c=3", "a=1,b=2,c=3"},
		"what is no pair is somebody's and stays":          {"odd, b = 2,", "", amd, "odd,b = 2," + arch, arch},
		"a record that was damaged makes nobody's pair go": {"z=1", "garbage,=,", amd, "z=1," + arch, arch},
		"a value that is empty is a value":                 {"node-role.kubernetes.io/infra=", "", amd, "node-role.kubernetes.io/infra=," + arch, arch},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			entries := map[string]string{}
			for key, value := range tc.labels {
				entries[key] = key + "=" + value
			}
			got, record := merge(tc.text, tc.record, entries, labelID)
			if got != tc.want || record != tc.wantRecord {
				t.Fatalf("got %q with record %q, want %q with %q", got, record, tc.want, tc.wantRecord)
			}
			if again, same := merge(got, record, entries, labelID); again != got || same != record {
				t.Errorf("a second pass makes it %q with record %q", again, same)
			}
		})
	}
}

func TestAnnotate(t *testing.T) {
	size := actuators.Capacity{CPU: 4, MemoryMiB: 16384, GPU: 1, Architecture: "arm64", Labels: map[string]string{"example.com/fast": "yes"}}
	template := &machinev1beta1.MachineSpec{
		ObjectMeta: machinev1beta1.ObjectMeta{Labels: map[string]string{"team": "a", "not a label": "x"}},
		Taints: []corev1.Taint{
			{Key: "only", Value: "batch", Effect: corev1.TaintEffectNoSchedule},
			{Key: "bare", Effect: corev1.TaintEffectNoExecute},
			{Key: "only", Value: "ignored-on-the-node-too", Effect: corev1.TaintEffectNoSchedule},
		},
	}
	const ours, taints = "example.com/fast=yes,kubernetes.io/arch=arm64,team=a", "bare:NoExecute,only=batch:NoSchedule"
	record := func(replace ...string) string {
		return strings.NewReplacer(replace...).Replace("vCPU=4,cpu=4,memoryMb=16384,memory=16Gi,GPU=1,gpu-count=1,gpu-type=nvidia.com/gpu")
	}
	whole := map[string]string{
		appliedSizeAnnotation: record(),
		cpuAnnotation:         "4", memoryAnnotation: "16384", gpuAnnotation: "1",
		upstreamCPU: "4", upstreamMemory: "16Gi", upstreamGPUCount: "1", upstreamGPUType: "nvidia.com/gpu",
		labelsAnnotation: ours, appliedLabelsAnnotation: ours, taintsAnnotation: taints, appliedTaintsAnnotation: taints,
	}
	with := func(pairs map[string]string) map[string]string { return merged(whole, pairs) }
	other := map[string]string{ // upstream's are as OpenShift's cluster-autoscaler-operator derives them
		cpuAnnotation: "2", memoryAnnotation: "2048", gpuAnnotation: "0",
		upstreamCPU: "2", upstreamMemory: "2147483648", upstreamGPUCount: "0", upstreamGPUType: "",
	}
	written := maps.Clone(other)
	written[appliedSizeAnnotation] = "vCPU=2,cpu=2,memoryMb=2048,memory=2147483648,GPU=0,gpu-count=0,gpu-type="
	tcs := map[string]struct {
		existing map[string]string
		want     map[string]string
	}{
		"a MachineSet without annotations": {nil, whole},
		"others' annotations stay": {
			map[string]string{"example.com/owner": "me", labelsAnnotation: "a=1"},
			with(map[string]string{"example.com/owner": "me", labelsAnnotation: "a=1," + ours}),
		},
		"what the controller wrote follows the size": {written, whole},
		"what a person wrote instead stays, and upstream's follows it": {
			merged(written, map[string]string{gpuAnnotation: "2", memoryAnnotation: "15000"}),
			with(map[string]string{
				gpuAnnotation: "2", upstreamGPUCount: "2", memoryAnnotation: "15000", upstreamMemory: "15000Mi",
				appliedSizeAnnotation: "vCPU=4,cpu=4,memory=15000Mi,gpu-count=2,gpu-type=nvidia.com/gpu",
			}),
		},
		"a person's second change too": {
			with(map[string]string{gpuAnnotation: "3", upstreamGPUCount: "2", appliedSizeAnnotation: record("GPU=1,", "", "gpu-count=1", "gpu-count=2")}),
			with(map[string]string{gpuAnnotation: "3", upstreamGPUCount: "3", appliedSizeAnnotation: record("GPU=1,", "", "gpu-count=1", "gpu-count=3")}),
		},
		"what others wrote before the controller stays": {other, merged(other, with(map[string]string{
			cpuAnnotation: "2", memoryAnnotation: "2048", gpuAnnotation: "0",
			upstreamCPU: "2", upstreamMemory: "2147483648", upstreamGPUCount: "0", upstreamGPUType: "",
			appliedSizeAnnotation: "cpu=2,memory=2147483648,gpu-count=0,gpu-type=",
		}))},
		"what is no size stays without effect": {
			map[string]string{cpuAnnotation: "many", gpuAnnotation: "-1"},
			with(map[string]string{cpuAnnotation: "many", gpuAnnotation: "-1", appliedSizeAnnotation: record("vCPU=4,", "", "GPU=1,", "")}),
		},
		"what was derived keeps its form while the size is the same": {
			map[string]string{memoryAnnotation: "16384", upstreamMemory: "17179869184"},
			with(map[string]string{upstreamMemory: "17179869184", appliedSizeAnnotation: record("16Gi", "17179869184")}),
		},
		"what a person wrote stays": {
			map[string]string{
				upstreamCPU: "3500m", upstreamMemory: "15Gi", upstreamGPUCount: "2", upstreamGPUType: "amd.com/gpu", upstreamMaxPods: "250",
			},
			with(map[string]string{
				upstreamCPU: "3500m", upstreamMemory: "15Gi", upstreamGPUCount: "2", upstreamGPUType: "amd.com/gpu", upstreamMaxPods: "250",
				appliedSizeAnnotation: record(",cpu=4", "", ",memory=16Gi", "", ",gpu-count=1", "", ",gpu-type=nvidia.com/gpu", ""),
			}),
		},
		"also where there were no older annotations, and where it is no quantity": {
			map[string]string{upstreamCPU: "3", upstreamMemory: "much"},
			with(map[string]string{upstreamCPU: "3", upstreamMemory: "much", appliedSizeAnnotation: record(",cpu=4", "", ",memory=16Gi", "")}),
		},
		"also where it would take minutes to read": {
			map[string]string{upstreamMemory: "1234567890123456789012345e-300000000"},
			with(map[string]string{upstreamMemory: "1234567890123456789012345e-300000000", appliedSizeAnnotation: record(",memory=16Gi", "")}),
		},
		"a label and a taint of a person win": {
			map[string]string{labelsAnnotation: "team=b", taintsAnnotation: "only=me:NoSchedule,soft=1:PreferNoSchedule"},
			with(map[string]string{
				labelsAnnotation:        "team=b,example.com/fast=yes,kubernetes.io/arch=arm64",
				appliedLabelsAnnotation: "example.com/fast=yes,kubernetes.io/arch=arm64",
				taintsAnnotation:        "only=me:NoSchedule,soft=1:PreferNoSchedule,bare:NoExecute", appliedTaintsAnnotation: "bare:NoExecute",
			}),
		},
		"a taint that left the template goes": {
			map[string]string{taintsAnnotation: "old=1:NoSchedule,bare:NoExecute", appliedTaintsAnnotation: "bare:NoExecute,old=1:NoSchedule"},
			with(map[string]string{taintsAnnotation: "bare:NoExecute,only=batch:NoSchedule"}),
		},
		"the number of Pods is copied": {
			map[string]string{maxPodsAnnotation: "200"},
			with(map[string]string{maxPodsAnnotation: "200", upstreamMaxPods: "200", appliedMaxPodsAnnotation: "200"}),
		},
		"and follows": {
			map[string]string{maxPodsAnnotation: "100", upstreamMaxPods: "200", appliedMaxPodsAnnotation: "200"},
			with(map[string]string{maxPodsAnnotation: "100", upstreamMaxPods: "100", appliedMaxPodsAnnotation: "100"}),
		},
		"and goes":                             {map[string]string{upstreamMaxPods: "200", appliedMaxPodsAnnotation: "200"}, whole},
		"unless a person has changed it since": {map[string]string{upstreamMaxPods: "50", appliedMaxPodsAnnotation: "200"}, with(map[string]string{upstreamMaxPods: "50"})},
		"devices that are claimed have no gpu-type": {
			map[string]string{upstreamDRADriver: "gpu.nvidia.com"},
			without(with(map[string]string{upstreamDRADriver: "gpu.nvidia.com", appliedSizeAnnotation: record(",gpu-type=nvidia.com/gpu", "")}), upstreamGPUType),
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.existing)
			got := annotate(tc.existing, size, template)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.existing); diff != "" {
				t.Errorf("the existing annotations were changed:\n%s", diff)
			}
			if diff := cmp.Diff(got, annotate(got, size, template)); diff != "" {
				t.Errorf("a second pass changes them again (-first +second):\n%s", diff)
			}
		})
	}
	nothing := annotate(map[string]string{appliedLabelsAnnotation: "a=1"}, actuators.Capacity{}, &machinev1beta1.MachineSpec{})
	if len(nothing) != 8 || nothing[upstreamGPUType] != "" {
		t.Errorf("got %v, want no annotation that says nothing, but for the ones of the size", nothing)
	}
}

func merged(first, second map[string]string) map[string]string {
	out := maps.Clone(first)
	maps.Copy(out, second)
	return out
}

func without(annotations map[string]string, key string) map[string]string {
	delete(annotations, key)
	return annotations
}

// TestUpstreamReadsWhatIsWritten reads the annotations as provider clusterapi does: quantities, a
// resource of the GPU's type, taints.
func TestUpstreamReadsWhatIsWritten(t *testing.T) {
	taint := corev1.Taint{Key: "example.com/only", Value: "batch", Effect: corev1.TaintEffectNoSchedule}
	got := annotate(nil, actuators.Capacity{CPU: 64, MemoryMiB: 499712, GPU: 8, Architecture: "amd64"}, &machinev1beta1.MachineSpec{Taints: []corev1.Taint{taint}})
	memory, err := resource.ParseQuantity(got[upstreamMemory])
	if err != nil || memory.Value() != 499712<<20 {
		t.Errorf("memory is %q: %v", got[upstreamMemory], err)
	}
	if cpu, err := resource.ParseQuantity(got[upstreamCPU]); err != nil || cpu.Value() != 64 {
		t.Errorf("cpu is %q: %v", got[upstreamCPU], err)
	}
	parts := strings.Split(got[taintsAnnotation], ":")
	pair := strings.Split(parts[0], "=")
	if read := (corev1.Taint{Key: pair[0], Value: pair[1], Effect: corev1.TaintEffect(parts[1])}); len(parts) != 2 || len(pair) != 2 || read != taint {
		t.Errorf("taints are %q, read as %v", got[taintsAnnotation], read)
	}
}

func TestSizeMayDiffer(t *testing.T) {
	tcs := map[string]struct {
		change func(*machinev1beta1.MachineSet)
		want   bool
	}{
		"a resync changes nothing":             {func(*machinev1beta1.MachineSet) {}, false},
		"scaling changes no size":              {builder.WithReplicas(7), false},
		"nor does status":                      {func(s *machinev1beta1.MachineSet) { s.Status.ReadyReplicas = 3 }, false},
		"nor do annotations of others":         {func(s *machinev1beta1.MachineSet) { s.Annotations["example.com/a"] = "b" }, false},
		"a providerSpec does":                  {func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.ProviderSpec.Value.Raw = []byte(`{}`) }, true},
		"so does one that is gone":             {func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.ProviderSpec.Value = nil }, true},
		"an annotation taken off by hand does": {func(s *machinev1beta1.MachineSet) { delete(s.Annotations, cpuAnnotation) }, true},
		"so do labels of the template":         {func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.Labels = map[string]string{"a": "b"} }, true},
		"so do its taints":                     {func(s *machinev1beta1.MachineSet) { s.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a"}} }, true},
		"so do labels that somebody adds":      {func(s *machinev1beta1.MachineSet) { s.Annotations[labelsAnnotation] = "a=1" }, true},
		"who is in charge decides who writes": {func(s *machinev1beta1.MachineSet) {
			s.Status.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
		}, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Annotations = map[string]string{cpuAnnotation: "4"} })
			after := before.DeepCopy()
			tc.change(after)
			if got := capacityChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("let through: %t, want %t", got, tc.want)
			}
		})
	}
	if !capacityChanged().Create(event.CreateEvent{Object: builder.MachineSet()}) || capacityChanged().Delete(event.DeleteEvent{Object: builder.MachineSet()}) {
		t.Error("want a new MachineSet let through, and one that is gone not")
	}
	if capacityChanged().Update(event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}) {
		t.Error("want nothing else let through")
	}
}

func TestNewRefusesIncompleteOptions(t *testing.T) {
	whole := Options{Common: pipeline.Common{Client: struct{ client.Client }{}, Recorder: events.NewFakeRecorder(1)}, Estimator: &fake.Actuator{}}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	for name, remove := range map[string]func(*Options){
		"Client":    func(o *Options) { o.Client = nil },
		"Estimator": func(o *Options) { o.Estimator = nil },
		"Recorder":  func(o *Options) { o.Recorder = nil },
	} {
		options := whole
		remove(&options)
		if _, err := New(options); err == nil {
			t.Errorf("want an error without %s", name)
		}
	}
}

func TestAnEventSpeaksOfTheTemplate(t *testing.T) {
	got := inTemplate(errors.New("spec.providerSpec.value.cpu: bad\nspec.providerSpec.value.memory: bad"))
	if want := "spec.template.spec.providerSpec.value.cpu: bad\nspec.template.spec.providerSpec.value.memory: bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
