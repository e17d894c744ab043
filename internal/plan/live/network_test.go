package live

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/long"
)

// kubeconfig writes an administrator's kubeconfig.
func (b *bench) kubeconfig() string {
	b.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: plane.Config.Host,
		CertificateAuthorityData: plane.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: plane.Config.CertData,
		ClientKeyData: plane.Config.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: b.namespace}
	config.CurrentContext = "x"
	file := filepath.Join(b.t.TempDir(), "kubeconfig")
	b.must(clientcmd.WriteToFile(*config, file))
	return file
}

func TestALivePlanContactsTheAPIServerOnly(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	set := b.set(1, spec)
	b.bring(b.machine(set, "a"))
	// Configured providers reach for something else.
	credentials := &corev1.Secret{}
	b.must(b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "credentials"}, credentials))
	credentials.Data["server"] = []byte("https://127.0.0.1:1")
	b.must(b.client.Update(t.Context(), credentials))

	plugin, edit := filepath.Join(t.TempDir(), "kubectl-machine"), filepath.Join(t.TempDir(), "edit.yaml")
	// as make build does
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plugin,
		"../../../cmd/kubectl-machine")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.must(os.WriteFile(edit, b.manifest(edited(set, with(spec, map[string]any{"zone": "zone-b"}))).Content, 0o600))
	server, err := url.Parse(plane.Config.Host)
	b.must(err)
	plan := func(t *testing.T, arguments ...string) *visit {
		t.Helper()
		return visitAlone(t, server.Host, append([]string{
			plugin, "plan", "--kubeconfig", b.kubeconfig(), "--cache-dir", cache,
			"--engine-path", absolute(t, b.engine().Path), "--provider-mirror", absolute(t, "../../../bin/mirror"),
		}, arguments...)...)
	}

	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"for an edit":                {[]string{"--live", "-f", edit}, "1 would change in place"},
		"for what is in the cluster": {[]string{"machineset/" + set.Name}, "1 stays as it is"},
	} {
		t.Run(name, func(t *testing.T) {
			done := plan(t, tc.arguments...)
			if done.err != nil || !strings.Contains(done.out, tc.want) {
				t.Errorf("it ends with %v, %s and\n%s", done.err, done.errOut, done.out)
			}
			if found := done.elsewhere(); len(found) > 0 || done.led == 0 {
				t.Errorf("it has reached the API server %d times, and for something else: %q", done.led, found)
			}
		})
	}
	t.Run("which a refresh does not, and that is seen", func(t *testing.T) {
		done := plan(t, "machineset/"+set.Name, "--refresh")
		if found := done.elsewhere(); len(found) == 0 || done.led == 0 {
			t.Errorf("nothing is found, of %v; it prints\n%s%s", done.counters, done.out, done.errOut)
		}
	})
}
