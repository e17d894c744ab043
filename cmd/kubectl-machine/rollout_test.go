package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// deploy creates the MachineDeployment "pool" with revisions 1 and 2, as its controller would, and returns it.
func (w *world) deploy(t *testing.T) *v1beta1.MachineDeployment {
	t.Helper()
	size := func(cpu string) *runtime.RawExtension {
		return builder.ProviderSpec(map[string]any{"instanceType": cpu})
	}
	set := builder.MachineSet()
	d := &v1beta1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pool", Labels: map[string]string{"team": "a"},
			Annotations: map[string]string{v1beta1.RevisionAnnotation: "2", "example.com/kept": "yes"}},
		Spec:   v1beta1.MachineDeploymentSpec{Replicas: ptr.To[int32](1), Selector: set.Spec.Selector, Template: set.Spec.Template},
		Status: v1beta1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: 1},
	}
	d.Spec.Template.Spec.ProviderSpec.Value = size("large")
	if err := w.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for n, cpu := range []string{"small", "large"} {
		revision := builder.In(w.namespace, builder.MachineSet(builder.WithReplicas(int32(1-n))))
		revision.Name = "pool-" + cpu
		revision.Annotations = map[string]string{v1beta1.RevisionAnnotation: fmt.Sprint(n + 1), v1beta1.ChangeCauseAnnotation: "made " + cpu}
		revision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind))}
		d.Spec.Template.DeepCopyInto(&revision.Spec.Template)
		revision.Spec.Selector = *d.Spec.Selector.DeepCopy()
		revision.Spec.Selector.MatchLabels[v1beta1.TemplateHashLabel] = cpu
		revision.Spec.Template.Labels[v1beta1.TemplateHashLabel] = cpu
		revision.Spec.Template.Spec.ProviderSpec.Value = size(cpu)
		if err := w.Create(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		if cpu == "small" {
			machine := builder.Machine(builder.WithOwner(revision), func(m *machinev1beta1.Machine) { m.Name = "pool-small-a" })
			if err := w.Create(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

func TestRolloutVerbs(t *testing.T) {
	w := newSharedWorld(t)
	d := w.deploy(t)
	read := func() *v1beta1.MachineDeployment {
		t.Helper()
		now := &v1beta1.MachineDeployment{}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	cpu := func() string { return string(read().Spec.Template.Spec.ProviderSpec.Value.Raw) }
	manifest := filepath.Join(t.TempDir(), "pool.yaml")
	content := "apiVersion: machine.openshift.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: pool}\n"
	if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "machinedeployment.machine.openshift.io/pool"
	const resource = `machinedeployments.machine.openshift.io "pool"`
	for _, step := range []struct {
		line             string
		wantCode         int
		wantOut, wantErr string
		check            func() bool
	}{
		{line: "rollout status machinedeployment/pool --watch=false",
			wantOut: `Waiting for machinedeployment "pool" rollout to finish: 0 out of 1 new replicas have been updated...` + "\n"},
		{line: "rollout status md/pool --timeout 1s", wantCode: 1, wantErr: "error: timed out waiting for the condition\n",
			wantOut: `Waiting for machinedeployment "pool" rollout to finish: 0 out of 1 new replicas have been updated...` + "\n"},
		{line: "rollout status md/pool --revision 1", wantCode: 1,
			wantErr: "error: desired revision (1) is different from the running revision (2)\n"},
		{line: "rollout status md pool --revision -1", wantCode: 1, wantErr: "error: revision must be a positive integer: -1\n"},
		{line: "rollout status", wantCode: 1, wantErr: "error: required resource not specified"},
		{line: "rollout status pool", wantCode: 1, wantErr: "error: the server doesn't have a resource type \"pool\"\n"},
		{line: "rollout status md/nobody", wantCode: 1, wantErr: `error: machinedeployments.machine.openshift.io "nobody" not found`},
		{line: "rollout status machineset/workers", wantCode: 1, wantErr: `error: machineset "workers" has no rollout; request one with 'kubectl machine rollout update'`},
		{line: "rollout undo machineset/workers", wantCode: 1, wantErr: `machinesets.machine.openshift.io "workers" has no 'kubectl machine rollout undo'; name a`},
		{line: "rollout status machine/pool-small-a", wantCode: 1, wantErr: "machines/pool-small-a has no rollout; name a MachineDeployment"},
		{line: "rollout update md/pool", wantCode: 1, wantErr: "error: " + resource + " rolls out by itself once its template changes\n"},
		{line: "rollout status machinedeployments pool --watch=false", wantOut: `Waiting for machinedeployment "pool" rollout`},
		{line: "rollout history md/pool", wantOut: name + " \nREVISION  CHANGE-CAUSE\n1         made small\n2         made large\n\n"},
		{line: "rollout history md/pool --revision=1", wantOut: name + " with revision #1\nMachine Template:\n  metadata:\n"},
		{line: "rollout history md/pool --revision=3", wantCode: 1, wantErr: "error: unable to find the specified revision\n"},
		{line: "rollout history md/pool -o name", wantOut: "machineset.machine.openshift.io/pool-small\nmachineset.machine.openshift.io/pool-large\n"},
		{line: "rollout pause md/pool", wantOut: name + " paused\n", check: func() bool { return read().Spec.Paused }},
		{line: "rollout pause md/pool", wantCode: 1, wantErr: "error: " + resource + " is already paused\n"},
		{line: "rollout restart md/pool", wantCode: 1,
			wantErr: "error: " + resource + " can't restart paused machinedeployment (run rollout resume first)\n"},
		{line: "rollout undo md/pool", wantCode: 1, wantErr: "error: you cannot rollback a paused machinedeployment; resume it first with "},
		{line: "rollout resume md/pool", wantOut: name + " resumed\n", check: func() bool { return !read().Spec.Paused }},
		{line: "rollout resume md/pool", wantCode: 1, wantErr: "error: " + resource + " is not paused\n"},
		{line: "rollout undo md/pool --to-revision=3", wantCode: 1, wantErr: "error: unable to find specified revision 3 in history\n"},
		{line: "rollout undo md/pool --dry-run=sever", wantCode: 1, wantErr: `error: invalid dry-run value (sever): must be "none", "server" or "client"`},
		{line: "rollout undo md/pool --dry-run=client", wantOut: "instanceType: small", check: func() bool { return strings.Contains(cpu(), "large") }},
		{line: "rollout undo md/pool --dry-run=server", wantOut: name + " rolled back (server dry run)\n",
			check: func() bool { return strings.Contains(cpu(), "large") }},
		{line: "rollout undo md/pool --to-revision=2",
			wantOut: name + " skipped rollback (current template already matches revision 2)\n"},
		{line: "rollout undo md/pool", wantOut: name + " rolled back\n", check: func() bool {
			now := read()
			_, hashed := now.Spec.Template.Labels[v1beta1.TemplateHashLabel]
			return strings.Contains(cpu(), "small") && !hashed && now.Annotations[v1beta1.ChangeCauseAnnotation] == "made small" &&
				now.Annotations["example.com/kept"] == "yes" && now.Annotations[v1beta1.RevisionAnnotation] == "2"
		}},
		{line: "rollout restart -f " + manifest, wantOut: name + " restarted\n", check: func() bool {
			return time.Since(read().Spec.RestartedAt.Time) < time.Minute
		}},
		{line: "rollout undo md/pool --to-revision=1", wantOut: name + " rolled back\n", check: func() bool {
			return read().Spec.RestartedAt == nil
		}},
		{line: "rollout restart machinedeployment -l team=b", wantErr: "No resources found in " + w.namespace + " namespace.\n"},
		{line: "rollout restart machinedeployment -l team=a -o name", wantOut: name + "\n"},
		{line: "rollout pause md/pool --as eve", wantCode: 1, wantErr: `User "eve" cannot get resource "machinedeployments"`},
		{line: "rollout pasue md/pool", wantCode: 1, wantErr: `unknown command "pasue" for "kubectl machine rollout"`},
		{line: "__complete rollout pause m", wantOut: "machinedeployment/pool\n:4"},
	} {
		got := w.ask(t, step.line)
		if got.code != step.wantCode || !strings.Contains(got.out, step.wantOut) || !strings.Contains(got.err, step.wantErr) {
			t.Fatalf("%s ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", step.line, got.code, step.wantCode, got.out, step.wantOut,
				got.err, step.wantErr)
		}
		if step.check != nil && !step.check() {
			t.Fatalf("after %s the MachineDeployment is %+v", step.line, read())
		}
	}
}

// The status before is that of a complete rollout.
func TestStatusDoesNotOvertakeARestart(t *testing.T) {
	w := newSharedWorld(t)
	w.deploy(t)
	w.ask(t, "rollout restart md/pool")
	if got := w.ask(t, "rollout status md/pool --watch=false"); got.out != "Waiting for machinedeployment spec update to be observed...\n" {
		t.Errorf("got %q, %q", got.out, got.err)
	}
}

func TestRolloutStatusWaits(t *testing.T) {
	w := newSharedWorld(t)
	d := w.deploy(t)
	asked := make(chan result)
	t.Setenv("KUBECONFIG", w.kubeconfig)
	ask := func(line string) { asked <- runCommand(t, strings.Fields(line)...) }
	go ask("rollout status md/pool --timeout 1m")
	d.Status = v1beta1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	time.Sleep(1500 * time.Millisecond) // it reads every second
	if err := w.Client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	want := "Waiting for machinedeployment \"pool\" rollout to finish: 0 out of 1 new replicas have been updated...\n" +
		"machinedeployment \"pool\" successfully rolled out\n"
	if got := <-asked; got.code != 0 || got.out != want {
		t.Errorf("got %d, %q and %q, want %q", got.code, got.out, got.err, want)
	}
	d.Status.AvailableReplicas = 0
	if err := w.Client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	go ask("rollout status md/pool --timeout 1m")
	time.Sleep(1500 * time.Millisecond)
	if err := w.Client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got.code != 1 || !strings.Contains(got.err, "error: object has been deleted\n") {
		t.Errorf("after a delete, got %d, %q and %q", got.code, got.out, got.err)
	}
}

func TestMachineDeploymentsSelectTheirMachines(t *testing.T) {
	w := newSharedWorld(t)
	w.deploy(t)
	tree := []string{"MachineDeployment/pool ", "\n├─ MachineSet/pool-large ", "\n└─ MachineSet/pool-small ", "\n   └─ Machine/pool-small-a "}
	machine := []string{"machine.machine.openshift.io/pool-small-a\n"}
	for line, wants := range map[string][]string{
		"tree": append(tree, "\nMachineSet/workers "), "tree md/pool": tree, "tree pool": tree, "tree -l team=a": tree,
		"runs machinedeployment/pool -o name": machine, "drift md/pool -o name": machine,
	} {
		got := w.ask(t, line)
		for _, want := range wants {
			if got.code != 0 || !strings.Contains(got.out, want) {
				t.Errorf("%s ends with %d, %q and\n%s\nwant %q", line, got.code, got.err, got.out, want)
			}
		}
		if line != "tree" && strings.Contains(got.out, "workers") {
			t.Errorf("%s prints more than what it names:\n%s", line, got.out)
		}
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"machine.openshift.io"}, Resources: []string{"machines", "machinesets"}, Verbs: []string{"list"}}}
	if err := w.Grant(t.Context(), w.namespace, "viewer-of-sets", rules...); err != nil {
		t.Fatal(err)
	}
	got := w.ask(t, "tree --as viewer-of-sets")
	if got.code != 0 || !strings.Contains(got.out, "\nMachineSet/pool-small ") || !strings.Contains(got.err, "note: you may not list MachineDeployments") {
		t.Errorf("without the right, tree ends with %d, %q and\n%s", got.code, got.err, got.out)
	}
}

func TestRolloutOfAMachineSet(t *testing.T) {
	w := newSharedWorld(t)
	w.deploy(t)
	set := builder.In(w.namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) { s.Name = "hollow" }))
	if err := w.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	mine := builder.Machine(builder.WithOwner(set), func(m *machinev1beta1.Machine) { m.Name = "hollow-a" })
	read := func() *machinev1beta1.MachineSet {
		t.Helper()
		now := &machinev1beta1.MachineSet{}
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(set), now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	annotated := func(strategy, until string) func() bool {
		return func() bool {
			a := read().Annotations
			return a[v1beta1.RolloutAnnotation] == strategy && a[v1beta1.ReplaceUntilAnnotation] == until
		}
	}
	// becomes does what the manager does.
	becomes := func(conditions ...machinev1beta1.Condition) func() bool {
		return func() bool {
			now := read()
			if conditions[0].Reason == v1beta1.ReasonRolledOut || conditions[0].Reason == v1beta1.ReasonReplacementNeeded {
				now.Annotations = nil
				if err := w.Client.Update(t.Context(), now); err != nil {
					t.Fatal(err)
				}
			}
			now.Status.Conditions = conditions
			if err := w.Client.Status().Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000+seconds, 0)) }
	rolledOut := func(status corev1.ConditionStatus, reason, message string) machinev1beta1.Condition {
		return machinev1beta1.Condition{Type: v1beta1.ConditionRolledOut, Status: status, Reason: reason, Message: message, LastTransitionTime: at(5)}
	}
	differs := func(since int64) machinev1beta1.Condition {
		return machinev1beta1.Condition{Type: v1beta1.ConditionTemplateInSync, Status: corev1.ConditionFalse, LastTransitionTime: at(since)}
	}
	const name = "machineset.machine.openshift.io/hollow"
	const resource = `error: machinesets.machine.openshift.io "hollow" `
	const waiting = `Waiting for machineset "hollow" rollout to `
	for _, step := range []struct {
		line             string
		wantCode         int
		wantOut, wantErr string
		check            func() bool
	}{
		{line: "rollout restart machineset/hollow", wantCode: 1, wantErr: resource + "has no Machines to replace\n", check: func() bool {
			return w.Create(t.Context(), mine) == nil && annotated("", "")()
		}},
		{line: "rollout update machineset/hollow --strategy Recreate", wantCode: 1, wantErr: resource + `cannot be updated by "Recreate": --strategy must be one of`},
		{line: "rollout update machineset/pool-large", wantCode: 1,
			wantErr: `error: machinesets.machine.openshift.io "pool-large" belongs to MachineDeployment pool; change or restart that`},
		{line: "rollout status machineset/pool-large", wantCode: 1, wantErr: `error: machineset "pool-large" belongs to MachineDeployment pool; name that`},
		{line: "rollout restart machineset/hollow", wantOut: name + " restarted\n", check: func() bool {
			return annotated("RollingUpdate", mine.CreationTimestamp.UTC().Format(time.RFC3339))()
		}},
		{line: "rollout update machineset/hollow", wantOut: name + " update requested\n", check: annotated("InPlaceOrReplace", "")},
		{line: "rollout update machineset hollow --strategy=InPlace -o name", wantOut: name + "\n", check: annotated("InPlace", "")},
		{line: "rollout status machineset/hollow --watch=false", wantOut: waiting + "be observed...\n",
			check: becomes(rolledOut("False", v1beta1.ReasonRolloutInProgress, "2 of 3 Machines are to be brought up to date"))},
		{line: "rollout status machineset/hollow --watch=false", wantOut: waiting + "finish: 2 of 3 Machines are to be brought up to date...\n"},
		{line: "rollout status machineset/hollow --timeout=1s", wantCode: 1, wantErr: "error: timed out waiting for the condition\n",
			check: becomes(rolledOut("False", v1beta1.ReasonStopped, "Machine hollow-a: no space"))},
		{line: "rollout status machineset/hollow --watch=false", wantOut: waiting + "finish: it has stopped...\n", wantErr: "note: Machine hollow-a: no space\n",
			check: becomes(rolledOut("False", v1beta1.ReasonReplacementNeeded, "1 Machines need new instances: cpu"))},
		{line: "rollout status machineset/hollow", wantCode: 1,
			wantErr: `error: machineset "hollow" is rolled out in place only: 1 Machines need new instances: cpu`,
			check:   becomes(rolledOut("True", v1beta1.ReasonRolledOut, ""), differs(5))},
		{line: "rollout status machineset/hollow", wantOut: `machineset "hollow" successfully rolled out` + "\n",
			check: becomes(rolledOut("True", v1beta1.ReasonRolledOut, ""), differs(6))},
		{line: "rollout status machineset/hollow", wantCode: 1, wantErr: `error: machineset "hollow" has no rollout; request one with`},
	} {
		got := w.ask(t, step.line)
		if got.code != step.wantCode || !strings.Contains(got.out, step.wantOut) || !strings.Contains(got.err, step.wantErr) {
			t.Fatalf("%s ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", step.line, got.code, step.wantCode, got.out, step.wantOut,
				got.err, step.wantErr)
		}
		if step.check != nil && !step.check() {
			t.Fatalf("after %s the MachineSet is %+v", step.line, read())
		}
	}
}
