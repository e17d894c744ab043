package main

import (
	"context"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// statusKind begins a provider status.
const statusKind = `"apiVersion": "machine-iac.io/v1alpha1", "kind": "TerraformMachineProviderStatus"`

// writeStatus writes the status of a Machine as a manager would.
func (w *world) writeStatus(ctx context.Context, machine *machinev1beta1.Machine, providerStatus string) error {
	machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(providerStatus)}
	return w.Client.Status().Update(ctx, machine)
}

// checksDrift does what a manager does: it finds the Machine changed for each request, until the test ends. With
// another, that request replaces each before it is noticed.
func (w *world) checksDrift(t *testing.T, key client.ObjectKey, another string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			machine := &machinev1beta1.Machine{}
			if err := w.Client.Get(ctx, key, machine); err != nil {
				continue
			}
			if request := machine.Annotations["machine-iac.io/check-drift"]; request != "" {
				if another != "" && request != another {
					machine.Annotations["machine-iac.io/check-drift"] = another
					_ = w.Client.Update(ctx, machine)
					continue
				}
				_ = w.writeStatus(ctx, machine, `{`+statusKind+`, "instanceId": "i-1", "lastDriftCheckTime": "2026-03-01T12:00:00Z", "lastDriftCheckRequest": "`+request+
					`", "conditions": [{"type": "Drifted", "status": "True", "reason": "InstanceChanged", "message": "thing.this would change in size", "lastTransitionTime": "2026-03-01T12:00:00Z"}]}`)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

func TestADriftCheckIsRequested(t *testing.T) {
	w := newSharedWorld(t)
	add := func(name string, mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
		t.Helper()
		machine := builder.In(w.namespace, builder.Machine(append(mods, func(m *machinev1beta1.Machine) { m.Name = name })...))
		if err := w.Create(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
		return machine
	}
	made := add("made", builder.WithPhase("Running"))
	shared := add("shared", builder.WithPhase("Running"))
	silent := add("silent", builder.WithPhase("Running"))
	failed := add("failed", builder.WithPhase("Failed"), func(m *machinev1beta1.Machine) {
		message := "can't find created instance"
		m.Status.ErrorMessage = &message
	})
	for _, machine := range []*machinev1beta1.Machine{made, shared, silent, failed} {
		if err := w.writeStatus(t.Context(), machine, `{`+statusKind+`, "instanceId": "i-1", "lastDriftCheckTime": "2026-03-01T11:00:00Z"}`); err != nil {
			t.Fatal(err)
		}
	}
	w.checksDrift(t, client.ObjectKeyFromObject(made), "")
	w.checksDrift(t, client.ObjectKeyFromObject(shared), "192.0.2.7 2026-03-01T12:00:00Z")
	cases := map[string]struct {
		line             string
		wantCode         int
		wantOut, wantErr string
	}{
		"one that is checked":            {line: "drift made --now", wantOut: "thing.this would change in size"},
		"whose request is replaced":      {line: "drift shared --now", wantOut: "thing.this would change in size"},
		"of which nobody is named":       {line: "drift --now", wantCode: 1, wantErr: "--now takes the Machines to check: name them, or select them with -l"},
		"of one without an instance":     {line: "drift workers-a --now", wantCode: 1, wantErr: "the drift of the Machine workers-a cannot be checked: it has no instance yet"},
		"of one that has Failed":         {line: "drift made failed --now", wantCode: 1, wantErr: "cannot be checked: it is Failed: can't find created instance; nothing was requested"},
		"that is not done in time":       {line: "drift silent --now --wait 1s", wantCode: 1, wantOut: "silent", wantErr: "the drift of silent was not checked within 1s; the check stays requested"},
		"that is not waited for":         {line: "drift silent --now --wait 0", wantOut: "silent"},
		"a wait for nothing":             {line: "drift made --wait 1s", wantCode: 1, wantErr: "--wait belongs to --now"},
		"for whom may not patch Machine": {line: "drift made --now --as eve", wantCode: 1, wantErr: "eve"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := w.ask(t, tc.line)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	seen := silent.DeepCopy() // as the command has read it
	wait := func(when, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if late, err := (&driftRequest{wait: time.Hour}).check(ctx, w.Client, []machinev1beta1.Machine{*seen}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: late %v, %v; want %q", when, late, err, want)
		}
	}
	const interrupted = "interrupted; the checks stay requested"
	wait("interrupted", interrupted)
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(silent), silent); err != nil {
		t.Fatal(err)
	}
	phase := machinev1beta1.PhaseFailed
	silent.Status.Phase = &phase
	if err := w.Client.Status().Update(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	wait("with an instance that the check finds missing", interrupted)
	held := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["`+machinev1beta1.MachineFinalizer+`"]}}`))
	if err := w.Client.Patch(t.Context(), silent, held); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Delete(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	wait("of a Machine that is deleted meanwhile", "no check can come: it is being deleted")
	now := &machinev1beta1.Machine{}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(failed), now); err != nil {
		t.Fatal(err)
	}
	if len(now.Annotations) > 0 {
		t.Errorf("the Machine that cannot be checked got the annotations %v", now.Annotations)
	}
}

func TestLogsOfAMachineThatNeverRanShowItsConditions(t *testing.T) {
	w := newSharedWorld(t)
	machine := builder.In(w.namespace, builder.Machine(func(m *machinev1beta1.Machine) { m.Name = "waiting" }))
	if err := w.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "logs waiting"); got.code != 1 || !strings.Contains(got.err, "Its conditions say nothing of the reason; 'kubectl describe machine.machine.openshift.io waiting'") {
		t.Errorf("it ends with %d and %q", got.code, got.err)
	}
	machine.Status.Conditions = []machinev1beta1.Condition{
		{Type: "Drainable", Status: "True", LastTransitionTime: metav1.Now()},
		{Type: "InstanceExists", Status: "False", Reason: "InstanceNotCreated", Message: "Instance has not been created: the Secret x is missing", LastTransitionTime: metav1.Now()},
	}
	if err := w.Client.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	want := `no run has begun for the Machine "waiting", so that there is no output of the engine. Its conditions: InstanceExists is False (InstanceNotCreated): ` +
		"Instance has not been created: the Secret x is missing"
	if got := w.ask(t, "logs waiting"); got.code != 1 || !strings.Contains(got.err, want) || strings.Contains(got.err, "Drainable") {
		t.Errorf("it ends with %d and %q, want %q", got.code, got.err, want)
	}
}

func TestWhatCountsAsTheRequestedCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation, done string
		want             bool
	}{
		"its own":                              {"mine", "mine", true},
		"its own, though the request is gone":  {"", "mine", true},
		"a later one":                          {"later", "later", true},
		"a later one that is not done":         {"later", "former", false},
		"not the former one that was put back": {"former", "former", false},
		"none yet":                             {"mine", "former", false},
	} {
		machine := builder.Machine()
		machine.Annotations = map[string]string{"machine-iac.io/check-drift": tc.annotation}
		machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{` + statusKind + `, "lastDriftCheckRequest": "` + tc.done + `"}`)}
		if got, err := checked(machine, "mine", "former"); got != tc.want || err != nil {
			t.Errorf("%s: checked is %t, %v, want %t", name, got, err, tc.want)
		}
	}
}
