package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fixed is a step that notes that it ran.
type fixed struct {
	name    string
	proceed bool
	err     error
}

func (f fixed) Reconcile(_ context.Context, ran *[]string) (bool, error) {
	*ran = append(*ran, f.name)
	return f.proceed, f.err
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason  string
		steps   []Step[*[]string]
		wantRan []string
		wantErr error

		wantAllRan   []string
		wantAllErr   error
		wantComplete bool
	}{
		"all proceed": {
			reason:     "every step runs, in order",
			steps:      []Step[*[]string]{fixed{"a", true, nil}, fixed{"b", true, nil}},
			wantRan:    []string{"a", "b"},
			wantAllRan: []string{"a", "b"}, wantComplete: true,
		},
		"one ends the reconcile": {
			reason:     "no step after it runs, and that is no error",
			steps:      []Step[*[]string]{fixed{"a", false, nil}, fixed{"b", true, nil}},
			wantRan:    []string{"a"},
			wantAllRan: []string{"a"}, wantComplete: true,
		},
		"one fails and would proceed": {
			reason:  "Run ends there; RunAll goes on and returns the error at the end",
			steps:   []Step[*[]string]{fixed{"a", true, broken}, fixed{"b", true, nil}},
			wantRan: []string{"a"}, wantErr: broken,
			wantAllRan: []string{"a", "b"}, wantAllErr: broken, wantComplete: true,
		},
		"one fails and ends the reconcile": {
			reason:  "neither goes on, and the reconcile is not complete",
			steps:   []Step[*[]string]{fixed{"a", false, broken}, fixed{"b", true, nil}},
			wantRan: []string{"a"}, wantErr: broken,
			wantAllRan: []string{"a"}, wantAllErr: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			if err := Run(t.Context(), tc.steps, &ran); !errors.Is(err, tc.wantErr) {
				t.Errorf("%s: Run returned %v, want %v", tc.reason, err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.wantRan, ran); diff != "" {
				t.Errorf("%s: Run ran (-want +got):\n%s", tc.reason, diff)
			}
			ran = nil
			complete, err := RunAll(t.Context(), tc.steps, &ran)
			if !errors.Is(err, tc.wantAllErr) || complete != tc.wantComplete {
				t.Errorf("%s: RunAll returned %t, %v, want %t, %v", tc.reason, complete, err, tc.wantComplete, tc.wantAllErr)
			}
			if diff := cmp.Diff(tc.wantAllRan, ran); diff != "" {
				t.Errorf("%s: RunAll ran (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequeueAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		asked []time.Duration
		want  time.Duration
	}{
		"never":                  {nil, 0},
		"once":                   {[]time.Duration{time.Minute}, time.Minute},
		"the soonest counts":     {[]time.Duration{time.Minute, time.Second, time.Hour}, time.Second},
		"zero asks for none":     {[]time.Duration{time.Minute, 0}, time.Minute},
		"the past asks for none": {[]time.Duration{-time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Requeue
			for _, after := range tc.asked {
				r.RequeueAfter(after)
			}
			if got := r.Result().RequeueAfter; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWritten(t *testing.T) {
	machines := corev1.Resource("machines")
	forbidden := apierrors.NewForbidden(machines, "a", nil)
	for name, tc := range map[string]struct {
		err, want error
		wantAfter time.Duration
	}{
		"written":        {nil, nil, 0},
		"gone":           {apierrors.NewNotFound(machines, "a"), nil, 0},
		"lost to others": {apierrors.NewConflict(machines, "a", nil), nil, ConflictRetry},
		"refused":        {forbidden, forbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Requeue
			if got := r.Written(tc.err); !errors.Is(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if got := r.Result().RequeueAfter; got != tc.wantAfter {
				t.Errorf("requeued after %s, want %s", got, tc.wantAfter)
			}
		})
	}
}

func TestIfUnchangedNamesTheResourceVersion(t *testing.T) {
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7"}}
	after := before.DeepCopy()
	after.Spec.Unschedulable = true
	got, err := IfUnchanged(before).Data(after)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"resourceVersion":"7"},"spec":{"unschedulable":true}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
