package iac

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/pulumikeys"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// eachEngine runs a test with each engine. What is reported, recorded and refused is the same with
// all.
func eachEngine(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	parallel(t)
	for _, name := range []v1alpha1.Engine{v1alpha1.EngineTerraform, v1alpha1.EnginePulumi} {
		t.Run(string(name), func(t *testing.T) {
			b := newBench(t)
			b.uses = name
			test(t, b)
		})
	}
}

// onPulumi returns the providerSpec of a stack for one of the module with its name.
func onPulumi(spec map[string]any) map[string]any {
	values := maps.Clone(spec)
	delete(values, "apiVersion")
	delete(values, "kind")
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PulumiMachineProviderSpecKind, "stack": "kubemark", "values": values,
	}
}

// pulumi makes an engine of Pulumi.
func (b *bench) pulumi() *pulumi.Engine {
	b.t.Helper()
	binary, err := foundPulumi()
	if err != nil {
		b.t.Fatalf("%v; run 'make tools'", err)
	}
	engine, err := pulumi.New(pulumi.Options{
		Binary: binary, WorkDir: shortdir.New(b.t), Plugins: repository(b.t, "bin", "pulumi-plugins"),
		ProviderMirror: repository(b.t, "bin", "mirror"), Slots: 4, WaitDelay: 10 * time.Second, Environment: b.environment, Sandbox: b.confined(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return engine
}

// pend leaves a Machine as a manager does that was killed while Pulumi made the instance: the
// checkpoint says that it had begun.
func (b *bench) pend(machine *machinev1beta1.Machine) {
	b.t.Helper()
	key := state.KeyFor(machine.Namespace, machine.UID)
	session, err := b.store.Acquire(b.t.Context(), key, state.AcquireOptions{
		Lock: state.Lock{Owner: b.owner, Run: "killed", Operation: string(runs.Create)},
		Meta: record.NewPatch().SetIntent(record.Intent{Operation: runs.Create, Run: "killed"}).MetaPatch,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	snapshot, err := session.Snapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	have, err := statefile.ParseCheckpoint(snapshot.Raw)
	if err != nil {
		b.t.Fatal(err)
	}
	have.Serial, have.Raw = have.Serial+1, halfMade(b.t, have.Raw)
	next, err := have.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := session.Put(b.t.Context(), next); err != nil {
		b.t.Fatal(err)
	}
}

// halfMade returns a checkpoint with the instance among what is being made.
func halfMade(t *testing.T, raw []byte) []byte {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	latest := file["checkpoint"].(map[string]any)["latest"].(map[string]any)
	var kept, pending []any
	for _, one := range latest["resources"].([]any) {
		resource := one.(map[string]any)
		if strings.HasSuffix(resource["urn"].(string), "::this") {
			delete(resource, "outputs")
			delete(resource, "id")
			pending = append(pending, map[string]any{"resource": resource, "type": "creating"})
			continue
		}
		delete(resource, "outputs")
		kept = append(kept, resource)
	}
	if len(pending) != 1 {
		t.Fatalf("%d instances in %s", len(pending), raw)
	}
	latest["resources"], latest["pending_operations"] = kept, pending
	changed, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// unfinished returns what the state says is being made.
func (b *bench) unfinished(machine *machinev1beta1.Machine) []string {
	b.t.Helper()
	f, err := b.facts(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	return f.State.Unfinished
}

func TestAnInstanceThatPulumiWasMakingIsTakenOverWhereItIs(t *testing.T) {
	b := newBench(t)
	b.uses = v1alpha1.EnginePulumi
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)

	b.pend(machine)
	if got := b.unfinished(machine); len(got) != 1 {
		t.Fatalf("unfinished are %q; this shows nothing", got)
	}
	b.bring(machine)
	if after := b.node(machine); after == nil || after.UID != before.UID {
		t.Fatalf("the Node is %v, want the one with UID %s", after, before.UID)
	}
	if got := b.unfinished(machine); len(got) > 0 {
		t.Errorf("after it was found, unfinished are %q", got)
	}

	b.pend(machine)
	if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
		t.Fatal(err)
	}
	b.bring(machine)
	if after := b.node(machine); after == nil || after.UID == before.UID {
		t.Fatalf("the Node is %v, want a new one in place of the one that never was", after)
	}
	if got := b.unfinished(machine); len(got) > 0 {
		t.Errorf("after it was made, unfinished are %q", got)
	}

	b.pend(machine)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete of what was being made: %v, want the instance gone", err)
	}
}

func TestWhatPulumiWasMakingAndIsNotThereKeepsNobodyFromDeleting(t *testing.T) {
	b := newBench(t)
	b.uses = v1alpha1.EnginePulumi
	machine := b.machine()
	b.bring(machine)
	b.pend(machine)
	if err := b.client.Delete(t.Context(), b.node(machine)); err != nil {
		t.Fatal(err)
	}
	if err := b.drive(b.Delete, machine); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Get(t.Context(), state.KeyFor(machine.Namespace, machine.UID)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the state after Delete: %v, want none", err)
	}
}

func TestAnInstanceStaysWithItsEngine(t *testing.T) {
	b := newBench(t)
	b.updates = desired.ModuleUpdatesInPlace
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine()
	b.bring(machine)
	before := b.node(machine)
	b.uses = v1alpha1.EnginePulumi
	other := b.machine()
	machine.Spec.ProviderSpec.Value = other.Spec.ProviderSpec.Value
	err := b.drive(b.Update, machine)
	if !isReason(err, machinev1beta1.UnsupportedChangeMachineError) || !strings.Contains(err.Error(), "was created with Terraform and cannot change engines") {
		t.Errorf("Update: %v, want an UnsupportedChange that names the engine", err)
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v; the Node %s is there: %v", err, before.UID, b.node(machine) != nil)
	}
}

func TestAMachineOfAnEngineThatIsNotThereSaysSo(t *testing.T) {
	b := newBench(t)
	b.uses, b.lacks = v1alpha1.EnginePulumi, v1alpha1.EnginePulumi
	b.start(shortdir.New(t), "owner-1")
	err := b.drive(b.Create, b.machine())
	if err == nil || !strings.Contains(err.Error(), "needs Pulumi") || !strings.Contains(err.Error(), "--pulumi") || actuators.IsInvalidConfiguration(err) {
		t.Errorf("Create: %v, want an error that is tried again and names the fix", err)
	}
}

func TestWhatPulumiPrintsIsKeptWithoutSecrets(t *testing.T) {
	b := newBench(t)
	b.uses = v1alpha1.EnginePulumi
	const secret = "this-is-no-token"
	wrong := b.secret("wrong", func(s *corev1.Secret) { s.Data["token"] = []byte(secret) })
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": wrong.Name} })
	if err := b.drive(b.Create, machine); !isReason(err, machinev1beta1.CreateMachineError) || !strings.Contains(err.Error(), "credentials") {
		t.Fatalf("Create with a wrong token: %v, want an error about credentials", err)
	}
	if got := b.output(machine); got == "" || strings.Contains(got, secret) {
		t.Errorf("after a create that failed:\n%s", got)
	}
	set(machine, b, "credentialsSecret", map[string]any{"name": "kubemark-credentials"})
	b.bring(machine)
	token := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "kubemark-credentials"}, token); err != nil {
		t.Fatal(err)
	}
	if got := b.output(machine); !strings.Contains(got, ".this") || strings.Contains(got, string(token.Data["token"])) {
		t.Errorf("after a create:\n%s", got)
	}
}

func TestAKeyThatIsReplacedIsDoneWithAfterADriftCheck(t *testing.T) {
	b := newBench(t)
	b.uses = v1alpha1.EnginePulumi
	var err error
	if b.keys, err = pulumikeys.New(b.client, pulumikeys.Options{Namespace: b.namespace}); err != nil {
		t.Fatal(err)
	}
	b.start(shortdir.New(t), "owner-1")
	machine := b.machine(func(spec map[string]any) { spec["userDataSecret"] = map[string]any{"name": "user-data"} })
	err = plane.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "user-data"}, Data: map[string][]byte{"userData": []byte("#cloud-config")},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.bring(machine)
	uses := func() map[string]pulumikeys.Use {
		t.Helper()
		found, err := pulumikeys.Uses(t.Context(), b.store, b.namespace)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := uses()
	if len(before) != 1 {
		t.Fatalf("the states use %d keys: %+v; want one", len(before), before)
	}
	if _, err := b.keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := b.checked(machine); found.Result != record.DriftNone {
		t.Errorf("the check found %+v, want no drift", found)
	}
	current, err := b.keys.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after := uses(); after[current.Salt()].Checkpoints != 1 {
		t.Errorf("the states use %+v; want the new key for the one that counts", after)
	}
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v", err)
	}
}
