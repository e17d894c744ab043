package iac

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestWhatIsRememberedHasNoUserData(t *testing.T) {
	keys := []v1alpha1.CredentialKey{{Key: "token", Env: "KUBE_TOKEN"}}
	wanted := &desired{credentialsSecret: "secret", keys: keys, inputs: &render.Inputs{
		Variables:   []byte(`{"machine":{"name":"m"},"provider_spec":{"cpu":12345678901234567890.5},"user_data":"hush"}`),
		Environment: map[string]string{"KUBE_TOKEN": "hush"},
	}}
	packed, err := wanted.remember()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readRemembered(packed)
	if err != nil {
		t.Fatal(err)
	}
	want := &remembered{CredentialsSecret: "secret", Keys: keys, Variables: map[string]json.RawMessage{
		"machine": json.RawMessage(`{"name":"m"}`), "provider_spec": json.RawMessage(`{"cpu":12345678901234567890.5}`), "user_data": json.RawMessage(`""`),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatHasNoRoomIsNotRemembered(t *testing.T) {
	noise := make([]byte, state.MaxAttachmentBytes)
	_, _ = rand.Read(noise)
	wanted := &desired{inputs: &render.Inputs{Variables: []byte(`{"machine":"` + base64.StdEncoding.EncodeToString(noise) + `"}`)}}
	if packed, err := wanted.remember(); packed != nil || err != nil {
		t.Errorf("%d bytes, %v; want none", len(packed), err)
	}
}

func TestRememberedInputsTakeTheCredentialsOfNow(t *testing.T) {
	used := changedModule(t, "")
	kept := &remembered{CredentialsSecret: "secret", Keys: []v1alpha1.CredentialKey{
		{Key: "token", Env: "KUBE_TOKEN"}, {Key: "server", Env: "KUBE_HOST", Public: true}, {Key: "proxy", Env: "PROXY", Optional: true},
		{Key: "ca", File: "CA_FILE"},
	}}
	credentials := map[string][]byte{"token": []byte("hush\n"), "server": []byte("https://host"), "other": []byte("secret too"), "ca": []byte("pem")}
	environment, files, err := kept.environment(used, credentials)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"KUBE_TOKEN": "hush\n", "KUBE_HOST": "https://host", "KUBE_LOAD_CONFIG_FILE": "false", "KUBECTL_PROVIDER_APPLY_RETRY_COUNT": "0"}
	if diff := cmp.Diff(want, environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"CA_FILE": "pem"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"secret too", "hush\n", "hush", "pem"}, kept.sensitive(credentials)); diff != "" {
		t.Errorf("sensitive (-want +got):\n%s", diff)
	}
	delete(credentials, "token")
	if _, _, err := kept.environment(used, credentials); err == nil || !strings.Contains(err.Error(), `"token"`) {
		t.Errorf("error %v, want it to name the key that is missing", err)
	}
}

func TestAMachineThatCannotBeReadIsDeletedAllTheSame(t *testing.T) {
	eachEngine(t, aMachineThatCannotBeReadIsDeletedAllTheSame)
}

func aMachineThatCannotBeReadIsDeletedAllTheSame(t *testing.T, b *bench) {
	for name, broken := range map[string]*runtime.RawExtension{
		"a field of the wrong type":   b.machine(func(spec map[string]any) { spec["cpu"] = "four" }).Spec.ProviderSpec.Value,
		"a value that is not allowed": b.machine(func(spec map[string]any) { spec["cpu"] = -1 }).Spec.ProviderSpec.Value,
		"no credentials named":        b.machine(func(spec map[string]any) { delete(spec, "credentialsSecret") }).Spec.ProviderSpec.Value,
		"a kind nobody serves":        {Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Nothing"}`)},
		"what is no object":           {Raw: []byte(`[]`)},
		"nothing at all":              nil,
	} {
		t.Run(name, func(t *testing.T) {
			machine := b.machine()
			b.bring(machine)
			b.events()
			machine.Spec.ProviderSpec.Value = broken
			if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
				t.Fatalf("Delete: %v, want the instance gone", err)
			}
			if sent := b.events(); len(sent) != 1 || !strings.Contains(sent[0], "Deleted the instance") {
				t.Errorf("events %q, want the Delete alone", sent)
			}
		})
	}
}

func TestWhatAChangeHasMadeIsRemembered(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	set(machine, b, "zone", "zone-b")
	if err := b.drive(b.Update, machine); err != nil {
		t.Fatal(err)
	}
	set(machine, b, "cpu", 8) // which is refused
	if err := b.drive(b.Update, machine); !isReason(err, machinev1beta1.UnsupportedChangeMachineError) {
		t.Fatalf("Update: %v, want UnsupportedChange", err)
	}
	kept := b.remembered(machine)
	if spec := string(kept.Variables["provider_spec"]); !strings.Contains(spec, "zone-b") || !strings.Contains(spec, `"cpu":4`) {
		t.Errorf("remembered is %s, want what was made and not what was refused", spec)
	}
}

func (b *bench) remembered(machine *machinev1beta1.Machine) *remembered {
	b.t.Helper()
	f, err := b.gather(b.t.Context(), machine)
	if err != nil {
		b.t.Fatal(err)
	}
	kept, err := readRemembered(f.Inputs)
	if err != nil {
		b.t.Fatal(err)
	}
	return kept
}

func TestALostInstanceIsFoundWithWhatIsRemembered(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	used, err := b.served(machine)
	if err != nil {
		t.Fatal(err)
	}
	b.crash(machine, used)
	set(machine, b, "cpu", "four")
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance that the state had lost gone", err)
	}
}

func TestRememberedInputsWaitForTheirSecret(t *testing.T) {
	b := newBench(t)
	secret := b.secret("mine", func(*corev1.Secret) {})
	machine := b.machine(func(spec map[string]any) { spec["credentialsSecret"] = map[string]any{"name": secret.Name} })
	b.bring(machine)
	if err := b.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	set(machine, b, "cpu", "four")
	err := b.drive(b.Delete, machine)
	if !isReason(err, machinev1beta1.DeleteMachineError) || !strings.Contains(err.Error(), b.namespace+"/mine") {
		t.Fatalf("Delete: %v, want a DeleteError that names the Secret", err)
	}
	b.secret("mine", func(*corev1.Secret) {})
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete with the Secret back: %v, want the instance gone", err)
	}
}

func TestInputsOfStatesFromBeforeAreRememberedByTheNextRun(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	b.bring(machine)
	key := state.KeyFor(machine.Namespace, machine.UID)
	head := &corev1.Secret{}
	if err := b.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, head); err != nil {
		t.Fatal(err)
	}
	delete(head.Data, "machine-iac.inputs")
	if err := b.client.Update(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	b.checked(machine)
	if kept := b.remembered(machine); kept.CredentialsSecret != "kubemark-credentials" || len(kept.Keys) != 3 {
		t.Errorf("remembered is %+v, want the inputs", kept)
	}
}
