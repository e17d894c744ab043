package inspect

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

const pulumiCheckpoint = `{"version": 3, "checkpoint": {"stack": "s", "latest": {
  "manifest": {"version": "v3.255.0"},
  "resources": [
    {"urn": "urn:pulumi:m::k::pulumi:pulumi:Stack::k-m", "type": "pulumi:pulumi:Stack", "outputs": {
      "provider_id": "kubemark://a", "token": {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}}},
    {"urn": "urn:pulumi:m::k::pulumi:providers:kubectl::default", "custom": true, "type": "pulumi:providers:kubectl", "outputs": {"token": "of-the-provider"}},
    {"urn": "urn:pulumi:m::k::kubectl:index/manifest:Manifest::this", "custom": true, "type": "kubectl:index/manifest:Manifest", "provider": "p",
     "outputs": {"name": "n", "count": 12345678901234567890, "password": "hunter22", "copy": "say hunter22", "list": [{"4dabf18193072939515e22adb298388d": "x"}]}},
    {"urn": "urn:pulumi:m::k::kubectl:index/manifest:Manifest::this", "custom": true, "delete": true, "type": "kubectl:index/manifest:Manifest", "outputs": {"name": "old"}},
    {"urn": "urn:pulumi:m::k::acme:index:Disk::data", "custom": true, "taint": true, "type": "acme:index:Disk"},
    {"urn": "urn:pulumi:m::k::acme:index:Pool::pool", "type": "acme:index:Pool"}],
  "pending_operations": [{"type": "creating", "resource": {"urn": "urn:pulumi:m::k::acme:index:Address::a", "custom": true, "type": "acme:index:Address", "inputs": {"zone": "a"}}}]
}}}`

func TestStateOfPulumi(t *testing.T) {
	raw, err := statefile.Checkpoint{Serial: 7, Lineage: "l", Raw: []byte(pulumiCheckpoint)}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, sensitive := range map[string]bool{"pulumi.masked.txt": false, "pulumi.whole.txt": true} {
		t.Run(name, func(t *testing.T) {
			shown, err := NewState(snapshotOf(string(raw)), sensitive)
			if err != nil {
				t.Fatal(err)
			}
			got := printing.As(t, "table", shown)
			golden.Check(t, "testdata/"+name, got)
			if strings.Contains(got, "hunter22") != sensitive || strings.Contains(got, "ciphertext") {
				t.Error("it shows what it should not, or not what it should")
			}
		})
	}
}
