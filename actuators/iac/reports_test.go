package iac

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// events returns the events so far, and forgets them.
func (b *bench) events() []string {
	var sent []string
	for {
		select {
		case event := <-b.recorder.(*events.FakeRecorder).Events:
			sent = append(sent, event)
		default:
			return sent
		}
	}
}

// warnings returns the Warning events so far, and forgets all events.
func (b *bench) warnings() []string {
	return slices.DeleteFunc(b.events(), func(event string) bool { return !strings.HasPrefix(event, corev1.EventTypeWarning) })
}

// secret makes a Secret with the bench's credentials, changed.
func (b *bench) secret(name string, change func(*corev1.Secret)) *corev1.Secret {
	b.t.Helper()
	good := &corev1.Secret{}
	if err := b.client.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}, good); err != nil {
		b.t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Data: good.Data}
	change(secret)
	if err := plane.Create(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
	return secret
}

func creation(machine *machinev1beta1.Machine) metav1.Condition {
	if found := meta.FindStatusCondition(readProviderStatus(machine).Conditions, string(machinev1beta1.MachineCreation)); found != nil {
		return *found
	}
	return metav1.Condition{}
}

func TestWaitingIsNoWarning(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	if _, waiting := actuators.AsRequeueAfter(b.Create(t.Context(), machine)); !waiting {
		t.Fatal("the first Create does not return that it is in progress")
	}
	b.bring(machine)
	b.clock.SetTime(b.clock.Now().Add(2 * time.Hour)) // a drift check falls due
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if got := b.warnings(); len(got) > 0 {
		t.Errorf("a life without any trouble has warnings: %q", got)
	}
	for name := range observe.Counters(t, b.metrics.Collectors()...) {
		if strings.HasPrefix(name, "mapi_instance_") {
			t.Errorf("a life without any trouble has failures: %s", name)
		}
	}
}

func TestAFailedCreateIsReportedCountedAndForgotten(t *testing.T) {
	b := newBench(t)
	secret := b.secret("wrong", func(s *corev1.Secret) { s.Data["token"] = []byte("this-is-no-token") })
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": secret.Name} })
	err := b.drive(b.Create, machine)
	if !isReason(err, machinev1beta1.CreateMachineError) {
		t.Fatalf("Create: %v, want a CreateError", err)
	}
	failed := creation(machine)
	if failed.Status != metav1.ConditionFalse || failed.Reason != machinev1beta1.MachineCreationFailedConditionReason || !strings.Contains(failed.Message, "check the credentials Secret") {
		t.Errorf("condition %+v, want it to say why there is no instance", failed)
	}
	if got := b.warnings(); len(got) == 0 || !strings.Contains(got[0], "FailedCreate") {
		t.Errorf("events %q, want a FailedCreate", got)
	}
	series := "mapi_instance_create_failed{name=" + machine.Name + ",namespace=" + b.namespace + ",reason=Credentials}"
	if got := observe.Counters(t, b.metrics.Collectors()...); got[series] < 1 {
		t.Errorf("counted %v, want %s", got, series)
	}

	set(machine, b, "credentialsSecret", map[string]any{"name": "kubemark-credentials"})
	b.bring(machine)
	if made := creation(machine); made.Status != metav1.ConditionTrue || made.Reason != machinev1beta1.MachineCreationSucceededConditionReason {
		t.Errorf("condition %+v, want it True once there is an instance", made)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	for name := range observe.Counters(t, b.metrics.Collectors()...) { // drift checks are counted for all Machines together
		if strings.Contains(name, "name="+machine.Name) {
			t.Errorf("counted %s, want nothing of a Machine that is gone", name)
		}
	}
}

func TestABadProviderSpecIsShownOnTheMachine(t *testing.T) {
	b := newBench(t)
	machine := b.machine(func(spec map[string]any) { spec["cpu"] = "four" })
	if err := b.Create(t.Context(), machine); !actuators.IsInvalidConfiguration(err) {
		t.Fatalf("Create: %v, want an InvalidConfiguration", err)
	}
	if failed := creation(machine); failed.Status != metav1.ConditionFalse || !strings.Contains(failed.Message, "spec.providerSpec.value.cpu") {
		t.Errorf("condition %+v, want it to name the field", failed)
	}
}

func TestADriftCheckIsCounted(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	check := func(result string) {
		t.Helper()
		b.clock.SetTime(b.clock.Now().Add(2 * time.Hour))
		series := "machine_iac_drift_checks_total{engine=" + reporting.EngineLabel(b.uses) + ",result=" + result + "}"
		deadline := time.Now().Add(patience)
		for observe.Counters(t, b.metrics.Collectors()...)[series] == 0 && time.Now().Before(deadline) {
			_ = b.Update(t.Context(), machine)
			time.Sleep(pause)
		}
		if got := observe.Counters(t, b.metrics.Collectors()...); got[series] != 1 {
			t.Errorf("counted %v, want one of %s", got, series)
		}
	}
	check("unchanged")
	if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
		t.Fatal(err)
	}
	check("missing")
}

func TestABadProviderSpecHoldsOnlyWhatMayBeThere(t *testing.T) {
	b := newBench(t)
	for name, value := range map[string]*runtime.RawExtension{
		"a Secret that is not there": b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": "gone"} }).Spec.ProviderSpec.Value,
		"no Secret":                  b.machine(func(spec map[string]any) { delete(spec, "credentialsSecret") }).Spec.ProviderSpec.Value,
		"a field of the wrong type":  b.machine(func(spec map[string]any) { spec["cpu"] = "four" }).Spec.ProviderSpec.Value,
	} {
		machine := b.machine()
		machine.Spec.ProviderSpec.Value = value
		if err := b.Delete(t.Context(), machine); err != nil {
			t.Errorf("%s: Delete of nothing: %v", name, err)
		}
		if exists, err := b.Exists(t.Context(), machine); exists || err != nil {
			t.Errorf("%s: Exists: %t, %v", name, exists, err)
		}
	}

	machine := b.machine(func(spec map[string]any) { spec["cpu"] = "four" })
	b.lose(machine, b.owner) // a create began, and nobody knows how it ended
	b.warnings()
	err := b.Delete(t.Context(), machine)
	if actuators.IsInvalidConfiguration(err) || !isReason(err, machinev1beta1.DeleteMachineError) || !strings.Contains(err.Error(), "spec.providerSpec.value.cpu") {
		t.Errorf("Delete: %v, want a DeleteError that names the field: on an InvalidConfiguration the Machine would be let go", err)
	}
	if got := b.warnings(); len(got) != 1 || !strings.Contains(got[0], "FailedDelete") {
		t.Errorf("events %q, want one FailedDelete", got)
	}
	set(machine, b, "cpu", 4)
	if err := b.drive(b.Delete, machine); err != nil {
		t.Errorf("Delete with the providerSpec fixed: %v", err)
	}
}

func TestTheExampleOfEveryModuleHasItsSize(t *testing.T) {
	b := newBench(t)
	examples, err := fs.Glob(modules.FS, "*/examples/machineset*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("examples %v, %v", examples, err)
	}
	for _, example := range examples {
		raw, err := fs.ReadFile(modules.FS, example)
		if err != nil {
			t.Fatal(err)
		}
		set := &machinev1beta1.MachineSet{}
		if err := yaml.Unmarshal(raw, set); err != nil {
			t.Fatalf("%s: %v", example, err)
		}
		size, err := b.Capacity(t.Context(), &machinev1beta1.Machine{Spec: set.Spec.Template.Spec})
		if err != nil || size == nil || size.CPU <= 0 || size.MemoryMiB <= 0 {
			t.Errorf("%s: %+v, %v; want a size", example, size, err)
		}
	}
}

func TestCapacityIsTheModules(t *testing.T) {
	parallel(t)
	b := newBench(t)
	hollow := map[string]string{
		corev1.LabelInstanceTypeStable: "hollow", corev1.LabelOSStable: "linux",
		corev1.LabelTopologyRegion: "region-a", corev1.LabelTopologyZone: "zone-a",
	}
	for name, tc := range map[string]struct {
		change  func(map[string]any)
		want    *actuators.Capacity
		wantErr string
	}{
		"what is stated":         {func(spec map[string]any) { spec["memory"], spec["architecture"] = "8Gi", "arm64" }, &actuators.Capacity{CPU: 4, MemoryMiB: 8192, Architecture: "arm64", Labels: hollow}, ""},
		"the module's defaults":  {func(spec map[string]any) { delete(spec, "cpu") }, &actuators.Capacity{CPU: 4, MemoryMiB: 16384, Architecture: "amd64", Labels: hollow}, ""},
		"a field's wrong type":   {func(spec map[string]any) { spec["cpu"] = []int{4} }, nil, "spec.providerSpec.value.cpu"},
		"memory that is no size": {func(spec map[string]any) { spec["memory"] = "much" }, nil, "spec.providerSpec.value.memory: not a valid amount of memory"},
		"a kind nobody knows":    {func(spec map[string]any) { spec["kind"] = "Nothing" }, nil, "KubemarkMachineProviderConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.Capacity(t.Context(), b.machine(tc.change))
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (!actuators.IsInvalidConfiguration(err) || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOperatingSystemIsTheMachines(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	machine.Labels = map[string]string{"machine.openshift.io/os-id": "Windows"}
	got, err := b.Capacity(t.Context(), machine)
	if err != nil || got.Labels[corev1.LabelOSStable] != "windows" {
		t.Errorf("got %+v, %v; want the label of Windows", got, err)
	}
}
