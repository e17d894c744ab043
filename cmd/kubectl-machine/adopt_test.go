package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// reports does what the manager does about Machines whose adoption is requested, until the test ends.
func (w *backupWorld) reports(t *testing.T, names map[string]v1alpha1.AdoptionStatus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for name, planned := range names {
				machine := &machinev1beta1.Machine{}
				if w.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, machine) == nil {
					w.report(ctx, machine, planned)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

func (w *backupWorld) report(ctx context.Context, machine *machinev1beta1.Machine, planned v1alpha1.AdoptionStatus) {
	asked := machine.Annotations[lifecycle.AdoptionAnnotation]
	if asked == "" {
		return
	}
	status := v1alpha1.TerraformMachineProviderStatus{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.TerraformMachineProviderStatusKind},
		Conditions: []metav1.Condition{{Type: "Adopted", Status: metav1.ConditionFalse, Reason: "Planned", LastTransitionTime: metav1.Now()}},
	}
	if asked == string(lifecycle.AdoptionAdopt) && planned.Refused == "" {
		status.Conditions[0].Status, status.Conditions[0].Reason = metav1.ConditionTrue, "Adopted"
	} else {
		planned.PlannedAt = metav1.Now()
		status.Adoption = &planned
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return
	}
	machine.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	_ = w.Client.Status().Update(ctx, machine) // it is tried again
}

// provided makes a Machine with a provider ID and nothing else.
func (w *backupWorld) provided(t *testing.T, name, id string) {
	t.Helper()
	machine := w.make(t, name, "")
	if id == "" {
		return
	}
	machine.Spec.ProviderID = &id
	if err := w.Client.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

// doomed makes a Machine with a provider ID that is being deleted.
func (w *backupWorld) doomed(t *testing.T, name, id string) {
	t.Helper()
	w.provided(t, name, id)
	machine := w.get(t, name)
	machine.Finalizers = []string{machinev1beta1.MachineFinalizer}
	machine.Labels = map[string]string{"doomed": "yes"}
	if err := errors.Join(w.Client.Update(t.Context(), machine), w.Client.Delete(t.Context(), machine)); err != nil {
		t.Fatal(err)
	}
}

// found makes a Machine without a provider ID whose instance the manager has found by the name.
func (w *backupWorld) found(t *testing.T, name string) {
	t.Helper()
	w.provided(t, name, "")
	for of, label := range map[string]string{name: "yes", "nameless": "no"} {
		machine := w.get(t, of)
		machine.Labels = map[string]string{"found": label}
		if err := w.Client.Update(t.Context(), machine); err != nil {
			t.Fatal(err)
		}
	}
	machine := w.get(t, name)
	machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"kind": "AWSMachineProviderStatus", "reportedBy": "machine-iac.io",
		"conditions": [{"type": "Adopted", "status": "False", "reason": "Planned"}], "adoption": {"plannedAt": "2026-01-01T00:00:00Z"}}`)}
	if err := w.Client.Status().Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

func TestAdopt(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	w.provided(t, "clean", "cloud:///1")
	w.provided(t, "differs", "cloud:///2")
	w.provided(t, "refused", "cloud:///3")
	w.provided(t, "silent", "cloud:///4")
	w.provided(t, "nameless", "")
	imports := []string{"server.this"}
	w.reports(t, map[string]v1alpha1.AdoptionStatus{
		"clean":   {Imports: imports},
		"differs": {Imports: imports, Changes: []string{"server.this: tags"}, Differences: []string{"providerSpec.cpu: 4 is requested, the server has 2"}},
		"refused": {Refused: "the server belongs to the cluster other"},
		"doomed":  {Imports: imports}, "installed": {Imports: imports},
	})
	for line, want := range map[string]string{
		"adopt nobody":                 `"nobody"`,
		"adopt nameless":               "the Machine nameless: no provider ID",
		"adopt --plan clean nameless":  "nothing was changed",
		"adopt --from-state f clean":   "address",
		"adopt silent --timeout 200ms": "the manager has not reported on silent within 200ms",
	} {
		w.expect(t, line, 1, want)
	}
	if _, asked := w.get(t, "clean").Annotations[lifecycle.AdoptionAnnotation]; asked {
		t.Fatal("a command that failed has set the annotation")
	}
	w.expect(t, "adopt --plan clean", 0, "Clean")
	w.found(t, "installed")
	w.expect(t, "adopt --plan -l found=no", 0, "Left out: nameless (no provider ID")
	w.expect(t, "adopt --plan -l found=yes", 0, "installed", "Clean")
	w.expect(t, "adopt installed", 0, "Adopted")
	w.doomed(t, "doomed", "cloud:///5")
	w.expect(t, "adopt --plan doomed", 1, "the Machine doomed is being deleted", "nothing was changed")
	w.expect(t, "adopt --plan -l doomed=yes", 0, "There are no Machines to adopt")
	w.expect(t, "adopt doomed", 0, "Adopted")
	w.expect(t, "adopt --plan clean differs", 2, "Differs", "server.this: tags; providerSpec.cpu: 4 is requested")
	w.expect(t, "adopt refused", 2, "Refused", "belongs to the cluster other")
	w.expect(t, "adopt clean -o json", 0, `"result": "Adopted"`)
	if asked := w.get(t, "differs").Annotations[lifecycle.AdoptionAnnotation]; asked != string(lifecycle.AdoptionPlan) {
		t.Errorf("after a plan the annotation is %q", asked)
	}
}

const plainState = `{"version": 4, "lineage": "l-1", "resources": [
	{"mode": "managed", "type": "aws_instance", "name": "worker", "instances": [
		{"index_key": 0, "attributes": {"id": "i-0"}}, {"index_key": 3, "attributes": {"id": "i-3"}}, {"index_key": 3, "deposed": "x", "attributes": {"id": "i-old"}}]},
	{"module": "module.a", "mode": "managed", "type": "aws_instance", "name": "worker", "instances": [{"index_key": "b", "attributes": {"id": "i-b"}}]},
	{"mode": "data", "type": "aws_instance", "name": "other", "instances": [{"attributes": {"id": "i-data"}}]},
	{"mode": "managed", "type": "aws_instance", "name": "blank", "instances": [{"attributes": {}}]}]}`

func TestAdoptFromAState(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	w.provided(t, "taken", "")
	w.reports(t, map[string]v1alpha1.AdoptionStatus{"taken": {Imports: []string{"aws_instance.this"}}})
	file := filepath.Join(t.TempDir(), "terraform.tfstate")
	written := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written(plainState)
	line := "adopt --from-state " + file + " --address "
	w.expect(t, line+"aws_instance.worker[3]", 1, "name it")
	w.expect(t, line+"aws_instance.worker[7] taken", 1, "has no resource aws_instance.worker[7]")
	w.expect(t, line+"aws_instance.other taken", 1, "has no resource")
	w.expect(t, line+"aws_instance.blank taken", 1, "has no ID in the state")

	w.expect(t, line+"aws_instance.worker[3] taken", 0, "Clean", "tofu state rm 'aws_instance.worker[3]'", "from = aws_instance.worker\n")
	annotations := w.get(t, "taken").Annotations
	if annotations[lifecycle.AdoptionAnnotation] != string(lifecycle.AdoptionPlan) || annotations[lifecycle.AdoptIDAnnotation] != "i-3" {
		t.Errorf("while the state has the instance the annotations are %v", annotations)
	}
	w.expect(t, line+`module.a.aws_instance.worker["b"] taken`, 1, "is to get the instance i-3")
	w.expect(t, line+"aws_instance.worker[7] taken", 1, "was planned from \"l-1 aws_instance.worker[3]\"")
	written(`{"version": 4, "lineage": "another", "resources": []}`)
	w.expect(t, line+"aws_instance.worker[3] taken", 1, "with the lineage another", "nothing was changed")
	if asked := w.get(t, "taken").Annotations[lifecycle.AdoptionAnnotation]; asked != string(lifecycle.AdoptionPlan) {
		t.Errorf("another state lets it be adopted: %q", asked)
	}
	written(strings.Replace(plainState, `{"index_key": 3, "attributes": {"id": "i-3"}},`, "", 1))
	w.expect(t, line+"aws_instance.worker[3] taken", 0, "Adopted")
	if asked := w.get(t, "taken").Annotations[lifecycle.AdoptionAnnotation]; asked != string(lifecycle.AdoptionAdopt) {
		t.Errorf("once the state lacks the instance the annotation is %q", asked)
	}
	written("{}")
	w.provided(t, "other", "")
	w.expect(t, line+"aws_instance.worker[3] other", 1, "is no Terraform state of version 4")
}
