package machinehealthcheck

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kubeevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestSendNew(t *testing.T) {
	about := func(topic, content string) stateEvent {
		return stateEvent{topic: topic, content: content, event: events.Normal(&corev1.Pod{}, "Said", "Say", topic+" "+content)}
	}
	type pass struct {
		events     []stateEvent
		unfinished bool
	}
	tcs := map[string]struct {
		passes []pass
		want   []string
	}{
		"what stays is sent once": {
			passes: []pass{{events: []stateEvent{about("a", "1")}}, {events: []stateEvent{about("a", "1")}}},
			want:   []string{"Normal Said a 1"},
		},
		"what changes is sent again": {
			passes: []pass{{events: []stateEvent{about("a", "1")}}, {events: []stateEvent{about("a", "2")}}},
			want:   []string{"Normal Said a 1", "Normal Said a 2"},
		},
		"what ends and begins again is sent again": {
			passes: []pass{{events: []stateEvent{about("a", "1")}}, {}, {events: []stateEvent{about("a", "1")}}},
			want:   []string{"Normal Said a 1", "Normal Said a 1"},
		},
		"a pass that failed midway ends nothing": {
			passes: []pass{{events: []stateEvent{about("a", "1")}}, {unfinished: true}, {events: []stateEvent{about("a", "1")}}},
			want:   []string{"Normal Said a 1"},
		},
		"each topic is of its own": {
			passes: []pass{{events: []stateEvent{about("a", ""), about("b", "")}}, {events: []stateEvent{about("b", ""), about("c", "")}}},
			want:   []string{"Normal Said a ", "Normal Said b ", "Normal Said c "},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			recorder := kubeevents.NewFakeRecorder(10)
			history := newHistory("uid")
			for _, pass := range tc.passes {
				history.sendNew(recorder, pass.events, !pass.unfinished)
			}
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMemoryIsOfOneObject(t *testing.T) {
	memory := newMemory()
	check := builder.MachineHealthCheck()
	check.UID = "first"
	first := memory.of(check)
	if memory.of(check) != first {
		t.Error("got another history of the same MachineHealthCheck")
	}
	check.UID = "second"
	if memory.of(check) == first {
		t.Error("got the history of the MachineHealthCheck that had the name before")
	}
	memory.forget(client.ObjectKeyFromObject(check))
	if len(memory.checks) > 0 {
		t.Error("got a history of a MachineHealthCheck that is gone")
	}
}

func TestNewWantsWhatItNeeds(t *testing.T) {
	if _, err := New(Options{}); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("got %v, want a plain error", err)
	}
}
