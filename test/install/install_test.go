// Package install_test applies the install tree to an API server, as an administrator does.
package install_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

const (
	root      = "../.."
	namespace = "openshift-machine-api"
	levelKey  = "pod-security.kubernetes.io/enforce"
)

// openshiftLabels are the namespace's labels on OpenShift.
var openshiftLabels = map[string]string{
	"kubernetes.io/metadata.name":        namespace,
	"name":                               namespace,
	"openshift.io/run-level":             "",
	"openshift.io/cluster-monitoring":    "true",
	"pod-security.kubernetes.io/enforce": "privileged",
	"pod-security.kubernetes.io/audit":   "privileged",
	"pod-security.kubernetes.io/warn":    "privileged",
}

func TestInstallLeavesAnExistingNamespaceAsItIs(t *testing.T) {
	long.Test(t)
	c := start(t)
	annotations := map[string]string{"openshift.io/node-selector": "", "workload.openshift.io/allowed": "management"}
	existing := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: openshiftLabels, Annotations: annotations},
	}
	if err := c.plane.Client.Create(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts"}} {
		for _, tree := range []string{"kubernetes", "controllers", "service-ca"} {
			c.kubectl(t, append(way, "-k", filepath.Join(root, "install", tree))...)
		}
	}
	after := &corev1.Namespace{}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKeyFromObject(existing), after); err != nil {
		t.Fatal(err)
	}
	if after.ResourceVersion != existing.ResourceVersion {
		t.Errorf("the namespace was written:\n%s", cmp.Diff(existing.ObjectMeta, after.ObjectMeta))
	}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "machine-api-controllers"},
		&appsv1.Deployment{}); err != nil {
		t.Errorf("the operator is not installed: %v", err)
	}
}

func TestANewNamespaceIsRestrictedAndAdmitsTheManager(t *testing.T) {
	long.Test(t)
	c := start(t)
	c.kubectl(t, "create", "-f", filepath.Join(root, "install", "kubernetes", "namespace.yaml"))
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "controllers"))

	made := &corev1.Namespace{}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, made); err != nil {
		t.Fatal(err)
	}
	if made.Labels[levelKey] != "restricted" {
		t.Errorf("Pod Security enforces %q", made.Labels[levelKey])
	}
	deployment := &appsv1.Deployment{}
	if err := c.plane.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "machine-api-controllers"},
		deployment); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = namespace, "machine-api-controllers-"
	if err := c.plane.Client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a Pod of the Deployment is refused: %v", err)
	}
	pod.Spec.HostNetwork = true
	if err := c.plane.Client.Create(t.Context(), pod, client.DryRunAll); err == nil ||
		!strings.Contains(err.Error(), "restricted") {
		t.Errorf("a Pod on the host's network is admitted, so the namespace enforces nothing: %v", err)
	}
}

type cluster struct {
	plane      *controlplane.ControlPlane
	kubeconfig string
}

// withoutCRDs leaves the CRDs to the installation.
func withoutCRDs(environment *envtest.Environment) {
	environment.CRDInstallOptions = envtest.CRDInstallOptions{}
}

func start(t *testing.T, options ...controlplane.Option) *cluster {
	t.Helper()
	plane, err := controlplane.Start(controlplane.Default, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: plane.Config.Host, CertificateAuthorityData: plane.Config.CAData,
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: plane.Config.CertData, ClientKeyData: plane.Config.KeyData,
	}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return &cluster{plane: plane, kubeconfig: file}
}

func (c *cluster) kubectl(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "kubectl"),
		append([]string{"--kubeconfig", c.kubeconfig}, arguments...)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out.String())
	}
}
