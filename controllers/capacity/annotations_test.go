package capacity

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
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
			got, record := merge(tc.text, tc.record, tc.labels)
			if got != tc.want || record != tc.wantRecord {
				t.Fatalf("got %q with record %q, want %q with %q", got, record, tc.want, tc.wantRecord)
			}
			if again, same := merge(got, record, tc.labels); again != got || same != record {
				t.Errorf("a second pass makes it %q with record %q", again, same)
			}
		})
	}
}

func TestAnnotate(t *testing.T) {
	size := actuators.Capacity{CPU: 4, MemoryMiB: 16384, GPU: 1, Architecture: "arm64", Labels: map[string]string{"example.com/fast": "yes"}}
	tcs := map[string]struct {
		existing map[string]string
		want     map[string]string
	}{
		"a MachineSet without annotations": {nil, map[string]string{
			cpuAnnotation: "4", memoryAnnotation: "16384", gpuAnnotation: "1",
			labelsAnnotation: "example.com/fast=yes,kubernetes.io/arch=arm64", appliedLabelsAnnotation: "example.com/fast=yes,kubernetes.io/arch=arm64",
		}},
		"others' annotations stay, and stale ones are fixed": {
			map[string]string{"example.com/owner": "me", cpuAnnotation: "2", memoryAnnotation: "2048", gpuAnnotation: "8", labelsAnnotation: "a=1"},
			map[string]string{
				"example.com/owner": "me", cpuAnnotation: "4", memoryAnnotation: "16384", gpuAnnotation: "1",
				labelsAnnotation: "a=1,example.com/fast=yes,kubernetes.io/arch=arm64", appliedLabelsAnnotation: "example.com/fast=yes,kubernetes.io/arch=arm64",
			},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tc.existing)
			got := annotate(tc.existing, size)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.existing); diff != "" {
				t.Errorf("the existing annotations were changed:\n%s", diff)
			}
		})
	}
	if got := annotate(map[string]string{appliedLabelsAnnotation: "a=1"}, actuators.Capacity{}); len(got) != 3 {
		t.Errorf("got %v, want no annotation that says nothing", got)
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
