package machineset

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestSummarize(t *testing.T) {
	seconds := func(n int) time.Time { return now.Add(-time.Duration(n) * time.Second) }
	tcs := map[string]struct {
		minReady int32
		since    map[types.UID]time.Time
		want     machinev1beta1.MachineSetStatus
		wantNext time.Duration
	}{
		"nobody is ready": {
			want: machinev1beta1.MachineSetStatus{Replicas: 3, FullyLabeledReplicas: 2},
		},
		"ready is available when no time is asked for": {
			since: map[types.UID]time.Time{"0": now, "1": seconds(5)},
			want:  machinev1beta1.MachineSetStatus{Replicas: 3, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
		},
		"ready for longer than asked is available; the next one is waited for": {
			minReady: 10,
			since:    map[types.UID]time.Time{"0": seconds(11), "1": seconds(4), "2": seconds(7)},
			want:     machinev1beta1.MachineSetStatus{Replicas: 3, FullyLabeledReplicas: 2, ReadyReplicas: 3, AvailableReplicas: 1},
			wantNext: 3*time.Second + time.Millisecond,
		},
		"ready for exactly as long as asked is not enough": {
			minReady: 10,
			since:    map[types.UID]time.Time{"0": seconds(10)},
			want:     machinev1beta1.MachineSetStatus{Replicas: 3, FullyLabeledReplicas: 2, ReadyReplicas: 1},
			wantNext: time.Millisecond,
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(builder.WithMinReadySeconds(tc.minReady), func(s *machinev1beta1.MachineSet) {
				s.Generation = 7
				s.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			})
			replicas := make([]*machinev1beta1.Machine, 0, 3)
			for i := range 3 {
				replicas = append(replicas, builder.Machine(builder.WithOwner(set), func(m *machinev1beta1.Machine) { m.UID = types.UID(fmt.Sprint(i)) }))
			}
			delete(replicas[2].Labels, builder.RoleLabel)
			tc.want.ObservedGeneration, tc.want.LabelSelector = 7, "a=b"
			if next := summarize(set, replicas, tc.since, now); next != tc.wantNext {
				t.Errorf("got %s until the next is available, want %s", next, tc.wantNext)
			}
			if diff := cmp.Diff(tc.want, set.Status); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFormatSelectorKeepsToWhatTheAPITakes(t *testing.T) {
	// The text is "k in (" and ")" with 63 values of 63 characters and one of the rest between
	// commas.
	selecting := func(length int) *metav1.LabelSelector {
		values := make([]string, 0, 64)
		for i := range 63 {
			values = append(values, fmt.Sprintf("%063d", i))
		}
		values = append(values, strings.Repeat("v", length-len("k in ()")-63*64))
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "In", Values: values}}}
	}
	tcs := map[string]struct {
		length, want int
	}{
		"as long as allowed":                             {4096, 4096},
		"longer is left out, or no status would be kept": {4097, 0},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := formatSelector(selecting(tc.length)); len(got) != tc.want {
				t.Errorf("got %d characters, want %d", len(got), tc.want)
			}
		})
	}
}

func TestReadyFlips(t *testing.T) {
	node := builder.Node(builder.WithReady(corev1.ConditionTrue, now))
	change := func(mod func(*corev1.Node)) event.UpdateEvent {
		after := node.DeepCopy()
		mod(after)
		return event.UpdateEvent{ObjectOld: node, ObjectNew: after}
	}
	tcs := map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"a heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now) }, false},
		"a label":     {func(n *corev1.Node) { n.Labels = nil }, false},
		"not ready":   {builder.WithReady(corev1.ConditionFalse, now), true},
		"unreachable": {builder.WithReady(corev1.ConditionUnknown, now), true},
		"not ready and ready again between two looks": {builder.WithReady(corev1.ConditionTrue, now.Add(time.Second)), true},
		"no condition any more":                       {func(n *corev1.Node) { n.Status.Conditions = nil }, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := readinessChanged().Update(change(tc.change)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if !readinessChanged().Create(event.CreateEvent{Object: node}) || !readinessChanged().Delete(event.DeleteEvent{Object: node}) {
		t.Error("Nodes that come or go must be let through")
	}
}

func TestReconcileErrorEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	reconcileError(builder.MachineSet(), errors.New("100% "+strings.Repeat("ö", 1000))).Send(recorder)
	got := <-recorder.Events
	if !strings.HasPrefix(got, "Warning ReconcileError 100% ö") || !strings.HasSuffix(got, "ö...") {
		t.Errorf("got %q", got)
	}
	if note := strings.TrimPrefix(got, "Warning ReconcileError "); len(note) > 1024 {
		t.Errorf("got a note of %d bytes, which the API server refuses", len(note))
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "Client, Reader and Recorder") {
		t.Errorf("got %v", err)
	}
}
