package pulumi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// byHand is what docs/pulumi.md has a person type, behind the commands that fetch the checkpoint and its passphrase.
const byHand = `mkdir -p backend/.pulumi/stacks/$STACK
echo 'version: 1' >backend/.pulumi/meta.yaml
cp checkpoint.json backend/.pulumi/stacks/$STACK/machine.json
export PULUMI_BACKEND_URL=file://$PWD/backend
pulumi stack export --stack organization/$STACK/machine --show-secrets
`

func TestACheckpointIsReadByHand(t *testing.T) {
	long.Test(t)
	page, err := os.ReadFile(repository(t, "docs", "pulumi.md"))
	if err != nil || !strings.Contains(string(page), strings.Replace(byHand, "cp checkpoint.json backend", "jq .checkpoint state.json >backend", 1)) {
		t.Errorf("docs/pulumi.md does not show the commands of this test, %v", err)
	}
	b := newBench(t, "hand")
	b.create()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "checkpoint.json"), b.last(), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", byHand)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + repository(t, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "PULUMI_SKIP_UPDATE_CHECK=true", "STACK=node", "PULUMI_CONFIG_PASSPHRASE=" + b.key.Passphrase(),
	}
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), userData) {
		t.Errorf("%v; it prints\n%s\nwant the checkpoint with the user data in the clear", err, out)
	}
}
