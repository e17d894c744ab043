package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/store"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// nameModule stores the name of a module in a Machine's state, as anyone who can write Secrets can.
func (b *bench) nameModule(machine *machinev1beta1.Machine, named *module.Module) {
	b.t.Helper()
	key, head := keyOf(machine), &corev1.Secret{}
	b.must(b.client.Get(b.t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: key.Name}, head))
	metav1.SetMetaDataAnnotation(&head.ObjectMeta, store.AnnotationReference, named.Reference())
	b.must(b.client.Update(b.t.Context(), head))
}

// A module may configure a provider that runs a program, for example to sign in. A preview must not use an unsigned
// module from the cluster.
func TestAModuleThatNobodySignedRunsNothing(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	var err error
	// unconfined: the sandbox would prevent the program from writing its file
	b.planner, err = offline.New(offline.Options{
		Binary: b.engine(), CacheDir: t.TempDir(), ProviderMirror: "../../../bin/mirror", Parallel: 2,
	})
	b.must(err)
	t.Cleanup(func() { b.must(b.planner.Close()) })
	set := b.set(1, spec)
	machine := b.machine(set, "a")
	b.bring(machine)
	mark := filepath.Join(t.TempDir(), "ran")
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "x", AuthInfo: "x"}
	kubeconfig.Clusters["x"] = &clientcmdapi.Cluster{Server: plane.Config.Host,
		CertificateAuthorityData: plane.Config.CAData}
	kubeconfig.AuthInfos["x"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/sh", Args: []string{"-c", "touch " + mark},
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	kubeconfig.CurrentContext = "x"
	content, err := clientcmd.Write(*kubeconfig)
	b.must(err)
	forged := changedWith(t, fstest.MapFS{"kubeconfig.yaml": &fstest.MapFile{Data: content}},
		`resource "kubectl_manifest" "this" {`, `provider "kubectl" {
  config_path      = "${path.module}/kubeconfig.yaml"
  load_config_file = true
  token            = ""
}

resource "kubectl_manifest" "this" {`)
	b.must(store.New(b.client, store.Options{}).Keep(t.Context(), b.namespace, forged))
	b.nameModule(machine, forged)

	for name, change := range map[string]func(*Options){
		"with the infrastructure":    func(o *Options) { o.Refresh = true },
		"from what was saved last":   func(*Options) {},
		"without a key":              func(o *Options) { o.Refresh, o.ModuleKeys = true, nil },
		"without the infrastructure": func(o *Options) { o.ModuleKeys = nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := *b
			b.t = t
			found := machineOf(t, b.plan(set, change), preview.Undecided)
			for _, want := range []string{
				"kubemark@sha256:" + forged.Digest()[:12], "the module in Secret " + b.namespace +
					"/machine-iac-module-" + forged.Digest(),
				"sign it with 'kubectl machine module sign' and pass the key with --module-key-file",
				"load the module with --module-dir or --module-source",
			} {
				wantText(t, found.Why, want)
			}
		})
	}
	t.Run("where the Machine may get another", func(t *testing.T) {
		b := *b
		b.t = t
		found := machineOf(t,
			b.plan(set, func(o *Options) { o.Refresh, o.ModuleUpdates = true, desired.ModuleUpdatesInPlace }),
			preview.Unchanged)
		wantText(t, strings.Join(found.Notes, " "), "is not trusted")
		if found.Module == forged.Reference() {
			t.Error("it is planned with what nobody vouches for")
		}
	})
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("a program ran that the cluster names")
	}
	t.Run("which it would do once it is signed", func(t *testing.T) {
		b := *b
		b.t = t
		b.must(store.New(b.client, store.Options{Keys: b.keys}).Keep(t.Context(), b.namespace, forged))
		b.plan(set, func(o *Options) { o.Refresh = true })
		if _, err := os.Stat(mark); err != nil {
			t.Errorf("the test shows nothing: %v", err)
		}
	})
}
