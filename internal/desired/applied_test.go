package desired

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

func TestStoredInputsHaveNoUserData(t *testing.T) {
	keys := []v1alpha1.CredentialKey{{Key: "token", Env: "KUBE_TOKEN"}}
	wanted := &State{CredentialsSecret: "secret", keys: keys, Inputs: &render.Inputs{
		Variables:   []byte(`{"machine":{"name":"m"},"provider_spec":{"cpu":12345678901234567890.5},"user_data":"hush"}`),
		Environment: map[string]string{"KUBE_TOKEN": "hush"},
	}}
	packed, err := wanted.PackInputs()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadInputs(packed)
	if err != nil {
		t.Fatal(err)
	}
	want := &AppliedInputs{CredentialsSecret: "secret", Keys: keys, Variables: map[string]json.RawMessage{
		"machine": json.RawMessage(`{"name":"m"}`), "provider_spec": json.RawMessage(`{"cpu":12345678901234567890.5}`), "user_data": json.RawMessage(`""`),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInputsThatAreTooLargeAreNotStored(t *testing.T) {
	noise := make([]byte, state.MaxAttachmentBytes)
	_, _ = rand.Read(noise)
	wanted := &State{Inputs: &render.Inputs{Variables: []byte(`{"machine":"` + base64.StdEncoding.EncodeToString(noise) + `"}`)}}
	if packed, err := wanted.PackInputs(); packed != nil || err != nil {
		t.Errorf("%d bytes, %v; want none", len(packed), err)
	}
}

func TestStoredInputsTakeThePresentCredentials(t *testing.T) {
	used := shipped(t, "kubemark")
	kept := &AppliedInputs{CredentialsSecret: "secret", Keys: []v1alpha1.CredentialKey{
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
	if diff := cmp.Diff([]string{"secret too", "hush\n", "hush", "pem"}, render.SensitiveValues(kept.Keys, credentials)); diff != "" {
		t.Errorf("sensitive (-want +got):\n%s", diff)
	}
	delete(credentials, "token")
	if _, _, err := kept.environment(used, credentials); err == nil || !strings.Contains(err.Error(), `"token"`) {
		t.Errorf("error %v, want it to name the key that is missing", err)
	}
}

// Whoever may write the Secret with a state may write other keys into its inputs, which become
// variables and files of the manager's engine.
func TestStoredInputsSetWhatTheModuleDeclares(t *testing.T) {
	used := shipped(t, "kubemark")
	forged := []v1alpha1.CredentialKey{
		{Key: "token", Env: "KUBE_TOKEN", Public: true}, {Key: "renamed", Env: "KUBE_HOST"}, {Key: "run", Env: "LD_PRELOAD"}, {Key: "run", File: "KUBE_HOST"},
		{Key: "run", File: "AWS_CONFIG_FILE"}, {Key: "run", Env: "KUBE_TOKEN", Path: []string{"a"}}, {Key: "run", Env: "TF_CLI_CONFIG_FILE"},
	}
	got := declared(forged, used)
	if len(got) != 2 || got[0].Env != "KUBE_TOKEN" || got[0].Public || got[1].Key != "renamed" || got[1].Env != "KUBE_HOST" || len(got[1].Matches) == 0 {
		t.Errorf("the keys are %+v; want token and renamed, as the module has them", got)
	}
	kept := &AppliedInputs{CredentialsSecret: "secret", Keys: got}
	if _, _, err := kept.environment(used, map[string][]byte{"token": []byte("t"), "renamed": []byte("http://user@host")}); err == nil {
		t.Error("a value is taken that the module does not accept")
	}
	if got := declared(forged, shipped(t, "libvirt")); len(got) != 0 {
		t.Errorf("of a module that reads none there are %+v", got)
	}
}
