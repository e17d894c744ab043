package machinehealthcheck

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// passed reports whether an update is let through; the change goes with a new resourceVersion, as
// it does at the API server.
func passed(let predicate.Predicate, before, after client.Object) bool {
	before.SetResourceVersion("1")
	after.SetResourceVersion("2")
	return let.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func TestMachineMatters(t *testing.T) {
	withNode := builder.WithNodeRef(builder.Node())
	tcs := map[string]struct {
		before, change func(*machinev1beta1.Machine)
		want           bool
	}{
		"a Failed phase":                      {change: builder.WithPhase("Failed"), want: true},
		"another phase":                       {change: builder.WithPhase("Running")},
		"a label":                             {change: builder.WithLabels(map[string]string{"a": "b"}), want: true},
		"the annotation of bare metal":        {change: builder.WithAnnotations(map[string]string{externalAnnotation: ""}), want: true},
		"another annotation":                  {change: builder.WithAnnotations(map[string]string{"a": "b"})},
		"an owner":                            {change: builder.WithOwner(builder.MachineSet()), want: true},
		"the end":                             {change: builder.DeletedAt(now), want: true},
		"a Node":                              {change: withNode, want: true},
		"another Node":                        {before: withNode, change: builder.WithNodeRef(builder.Node()), want: true},
		"the clock of its start":              {change: instanceSaid("True", time.Minute), want: true},
		"the same clock once there is a Node": {before: withNode, change: instanceSaid("True", time.Minute)},
		"a status that is written anew":       {change: builder.LastUpdatedAt(now)},
		"a status that is written at last":    {before: func(m *machinev1beta1.Machine) { m.Status.LastUpdated = nil }, change: builder.LastUpdatedAt(now), want: true},
		"another Machine of the same name":    {change: func(m *machinev1beta1.Machine) { m.UID = "other" }, want: true},
		"what nobody asks for": {change: func(m *machinev1beta1.Machine) {
			m.Status.Conditions = []machinev1beta1.Condition{{Type: "InstanceExists"}}
		}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := builder.Machine(builder.LastUpdatedAt(ago(time.Hour)))
			if tc.before != nil {
				tc.before(before)
			}
			after := before.DeepCopy()
			tc.change(after)
			if got := passed(updates(machineChanged), before, after); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNodeMatters(t *testing.T) {
	tcs := map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a status":            {builder.WithReady(corev1.ConditionFalse, ago(time.Hour)), true},
		"a time of change":    {builder.WithReady(corev1.ConditionTrue, now), true},
		"one condition more":  {withDiskPressure(now), true},
		"one condition less":  {func(n *corev1.Node) { n.Status.Conditions = nil }, true},
		"one for another":     {func(n *corev1.Node) { n.Status.Conditions[0].Type = "DiskPressure" }, true},
		"another of the name": {func(n *corev1.Node) { n.UID = "other" }, true},
		"a heartbeat":         {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now) }, false},
		"a reason":            {func(n *corev1.Node) { n.Status.Conditions[0].Reason = "KubeletIsReady" }, false},
		"a label":             {func(n *corev1.Node) { n.Labels["a"] = "b" }, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := builder.Node(builder.WithReady(corev1.ConditionTrue, ago(time.Hour)))
			after := before.DeepCopy()
			tc.change(after)
			if got := passed(updates(nodeChanged), before, after); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCheckMatters(t *testing.T) {
	tcs := map[string]struct {
		change func(*machinev1beta1.MachineHealthCheck)
		want   bool
	}{
		"a new generation": {func(c *machinev1beta1.MachineHealthCheck) { c.Generation++ }, true},
		"an annotation":    {builder.WithCheckAnnotations(map[string]string{pausedAnnotation: ""}), true},
		"the status":       {func(c *machinev1beta1.MachineHealthCheck) { c.Status.RemediationsAllowed++ }, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			before := builder.MachineHealthCheck()
			after := before.DeepCopy()
			tc.change(after)
			if got := passed(updates(checkChanged), asWritten(t, before), asWritten(t, after)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestUpdatesPassRepeats(t *testing.T) {
	let := updates(machineChanged)
	machine := builder.Machine()
	machine.ResourceVersion = "1"
	if !let.Update(event.UpdateEvent{ObjectOld: machine, ObjectNew: machine.DeepCopy()}) {
		t.Error("the informer's repeats must pass: they are the net below lost events")
	}
	if !let.Create(event.CreateEvent{Object: machine}) || !let.Delete(event.DeleteEvent{Object: machine}) {
		t.Error("what comes and goes must pass")
	}
}

// asWritten returns a MachineHealthCheck as the cache has it.
func asWritten(t *testing.T, check *machinev1beta1.MachineHealthCheck) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(check)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
