//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	// clusterID is the fixtures' cluster, as in the manager's flag.
	clusterID    = "demo"
	clusterLabel = "machine.openshift.io/cluster-api-cluster"
	certSecret   = "machine-iac-webhook-cert"
	authority    = "ca.crt" // the key in the Secret
	// webhookService is the webhooks' Service.
	webhookService = "machine-api-operator-webhook"
)

func anObjectThatIsApplied() {
	const name = "applied"
	// former is a replaced certificate.
	var former map[string][]byte

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		w.guarded(ctx)
	})

	It("is refused where it is wrong, with each field, its value and the fix", func(ctx SpecContext) {
		set := w.emptySet(name, with("cpu", "four"), with("memory", "plenty"), with("zone", "a/b"))
		said, err := w.apply(ctx, set)
		Expect(err).To(HaveOccurred())
		Expect(said).To(And(
			ContainSubstring(`denied the request: [providerSpec.`),
			ContainSubstring(`providerSpec.cpu: Invalid value: "four": `), ContainSubstring("write it as cpu: 4"),
			ContainSubstring(`providerSpec.memory: Invalid value: "plenty": `), ContainSubstring("memory: 16Gi"),
			ContainSubstring(`providerSpec.zone: Invalid value: "a/b": `),
		))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(
			MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("is let in with a warning where a field has no effect, or a Secret is missing", func(ctx SpecContext) {
		set := w.emptySet(name, with("Zone", "zone-b"), credentialsFrom("none"))
		said, err := w.apply(ctx, set)
		Expect(err).NotTo(HaveOccurred())
		Expect(said).To(And(
			ContainSubstring(
				`Warning: providerSpec.value: Unsupported value: "Zone": Unknown field (Zone) will be ignored; write it as zone`),
			ContainSubstring(
				`Warning: providerSpec.credentialsSecret: Invalid value: "none": not found. Expected CredentialsSecret to exist`),
		))
		w.kubectl(ctx, "delete", "machineset", name)
	})

	It("gets the name of its cluster when it is a Machine without", func(ctx SpecContext) {
		machine := w.machine(name)
		delete(machine.Labels, clusterLabel)
		Expect(w.client.Create(ctx, machine, client.DryRunAll)).To(Succeed())
		Expect(machine.Labels).To(HaveKeyWithValue(clusterLabel, clusterID))
		machine = w.machine(name)
		machine.Labels[clusterLabel] = "another"
		Expect(w.client.Create(ctx, machine, client.DryRunAll)).To(Succeed())
		Expect(machine.Labels).To(HaveKeyWithValue(clusterLabel, "another"))
	})

	It("gets the fields that the module fills in, which cannot be taken away afterwards", func(ctx SpecContext) {
		set := w.emptySet(name, theLeastForAWS)
		said, err := w.apply(ctx, set)
		Expect(err).NotTo(HaveOccurred())
		Expect(said).To(And(
			ContainSubstring("Warning: providerSpec.subnet: No subnet has been provided. Instances may be created in "+
				"an unexpected subnet and may not join the cluster."),
			ContainSubstring("Warning: providerSpec.iamInstanceProfile: no IAM instance profile provided: nodes may "+
				"be unable to join the cluster"),
		))
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		Expect(set.Spec.Template.Spec.ProviderSpec.Value.Raw).To(MatchJSON(`{
			"apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
			"ami": {"id": "ami-0123456789abcdef0"}, "placement": {"region": "us-east-1"}, "instanceType": "` +
			instanceTypeHere() + `",
			"userDataSecret": {"name": "worker-user-data"}, "credentialsSecret": {"name": "aws-cloud-credentials"}}`))
		for field, expected := range map[string]string{
			"ami": "ami.id", "instanceType": "instanceType", "userDataSecret": "userDataSecret",
			"credentialsSecret": "credentialsSecret",
		} {
			_, err := w.lab.Kubectl(ctx, "patch", "machineset", name, "--type=merge", "--patch",
				`{"spec":{"template":{"spec":{"providerSpec":{"value":{"`+field+`":null}}}}}}`)
			Expect(err).To(
				MatchError(ContainSubstring("providerSpec." + field + ": Required value: expected providerSpec." +
					expected + " to be populated")))
		}
		w.kubectl(ctx, "delete", "machineset", name)
	})

	It("keeps its selector when it is a MachineSet", func(ctx SpecContext) {
		_, err := w.lab.Kubectl(ctx, "patch", "machineset", setName, "--type=merge", "--patch",
			`{"spec":{"selector":{"matchLabels":{"machine.openshift.io/cluster-api-machine-role":"worker"}}}}`)
		Expect(err).To(MatchError(ContainSubstring("spec.selector: Forbidden: selector is immutable")))
	})

	It("is refused when it is a MachineHealthCheck that passes the schema and that no client "+
		"could read", func(ctx SpecContext) {
		said, err := w.kubectlWith(ctx, unreadableCheck, "create", "-f", "-")
		Expect(err).To(HaveOccurred())
		Expect(said).To(ContainSubstring(`spec.unhealthyConditions[0].timeout: Invalid value: "99999999h": `))
	})

	It("can always go, though it came in before it would have been refused", func(ctx SpecContext) {
		const keeps = "example.com/keeps"
		w.unguarded(ctx)
		machine := w.machine(name, with("kind", "MarbleMachineProviderConfig"))
		machine.Finalizers = []string{keeps}
		w.create(ctx, machine)
		w.guarded(ctx)
		w.kubectl(ctx, "annotate", "machine", name, "example.com/note=later")
		w.kubectl(ctx, "delete", "machine", name, "--wait=false")
		until(ctx, patience, "the operator has let the Machine go", func(ctx context.Context) error {
			if left := w.get(ctx, name).Finalizers; len(left) != 1 {
				return fmt.Errorf("its finalizers are %v", left)
			}
			return nil
		})
		w.kubectl(ctx, "patch", "machine", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
		Expect(w.client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(
			MatchError(apierrors.IsNotFound, "IsNotFound"))
	})

	It("is checked without a gap while the certificate and its authority are replaced", func(ctx SpecContext) {
		former = w.certificate(ctx)
		before := former[authority]
		Expect(w.servedBy(ctx, before)).To(Succeed())
		w.kubectl(ctx, "delete", "secret", certSecret)
		checked := 0
		Eventually(ctx, func() error {
			Expect(w.refusal(ctx)).To(Succeed(), "after %d that were checked", checked)
			checked++
			if w.servedBy(ctx, before) == nil {
				return errors.New("a certificate of the deleted authority is still served")
			}
			return w.servedBy(ctx, w.certificate(ctx)[authority])
		}).WithTimeout(patience).WithPolling(fast).Should(Succeed())
		Expect(w.refusal(ctx)).To(Succeed())
		Expect(w.pod.current().Running()).To(BeTrue())
		say("    %d objects were checked meanwhile", checked)
	})

	It("is checked with a certificate in files that another program renews", func(ctx SpecContext) {
		Expect(former).NotTo(BeEmpty(), "both authorities are trusted for an hour")
		present, dir := w.certificate(ctx), GinkgoT().TempDir()
		putFiles(dir, former)
		w.pod.restart(ctx, "--webhook-cert-dir="+dir)
		Expect(w.servedBy(ctx, former[authority])).To(Succeed())
		Expect(w.refusal(ctx)).To(Succeed())
		putFiles(dir, present)
		until(ctx, time.Minute, "the new files are taken",
			func(ctx context.Context) error { return w.servedBy(ctx, present[authority]) })
		Expect(w.refusal(ctx)).To(Succeed())
		w.pod.restart(ctx)
	})

	It("is checked again as soon as the webhooks are wanted again", func(ctx SpecContext) {
		w.unguarded(ctx)
		w.guarded(ctx)
	})

	It("is let in unchecked while no manager is there", func(ctx SpecContext) {
		w.pod.terminate()
		Expect(w.refusal(ctx)).To(MatchError(errNotRefused))
		w.pod.start(ctx)
		w.guarded(ctx)
	})
}

// unreadableCheck has a duration that matches the schema's pattern but overflows nanoseconds.
const unreadableCheck = `
apiVersion: machine.openshift.io/v1beta1
kind: MachineHealthCheck
metadata: {name: unreadable, namespace: openshift-machine-api}
spec:
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: hollow}}
  unhealthyConditions: [{type: Ready, status: "False", timeout: 99999999h}]
`

// emptySet returns a MachineSet with no replicas, with changes to its providerSpec.
func (w *world) emptySet(name string, changes ...func(map[string]any)) *machinev1beta1.MachineSet {
	GinkgoHelper()
	set := renamed(w.machineSet(0), name)
	changeSpec(&set.Spec.Template.Spec, changes...)
	return set
}

// theLeastForAWS keeps only the fields of a providerSpec that the module aws requires.
func theLeastForAWS(fields map[string]any) {
	clear(fields)
	maps.Copy(fields, map[string]any{
		"apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig",
		"ami": map[string]any{"id": "ami-0123456789abcdef0"}, "placement": map[string]any{"region": "us-east-1"},
	})
}

// instanceTypeHere returns the manager's default on this machine's architecture.
func instanceTypeHere() string {
	if runtime.GOARCH == "arm64" {
		return "m6g.large"
	}
	return "m5.large"
}

// apply runs kubectl apply with an object, and returns its output.
func (w *world) apply(ctx context.Context, object client.Object) (string, error) {
	GinkgoHelper()
	kind, err := w.client.GroupVersionKindFor(object)
	Expect(err).NotTo(HaveOccurred())
	object.GetObjectKind().SetGroupVersionKind(kind)
	manifest, err := yaml.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return w.kubectlWith(ctx, string(manifest), "apply", "-f", "-")
}

// kubectlWith runs kubectl as the administrator with stdin input, and returns all its output.
func (w *world) kubectlWith(ctx context.Context, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, w.lab.Path("bin", "kubectl"),
		append([]string{"--kubeconfig", w.lab.Cluster.AdminKubeconfig(), "--namespace", lab.Namespace},
			arguments...)...)
	command.Stdin = bytes.NewBufferString(input)
	said, err := command.CombinedOutput()
	return string(said), err
}

// errNotRefused means that an invalid object was admitted.
var errNotRefused = errors.New("a MachineSet that is wrong was let in")

// refusal returns nil if the webhooks reject an invalid object.
func (w *world) refusal(ctx context.Context) error {
	GinkgoHelper()
	err := w.client.Create(ctx, w.emptySet("wrong", with("cpu", "four")), client.DryRunAll)
	switch {
	case err == nil:
		return errNotRefused
	case !apierrors.IsForbidden(err):
		return fmt.Errorf("asking the API server: %w", err)
	}
	return nil
}

// guarded registers the webhooks unless they are registered, and waits until they respond.
func (w *world) guarded(ctx context.Context) {
	GinkgoHelper()
	Expect(w.lab.InstallWebhooks(ctx)).To(Succeed())
	until(ctx, 30*time.Second, "the webhooks are asked", w.refusal)
}

// unguarded unregisters the webhooks.
func (w *world) unguarded(ctx context.Context) {
	GinkgoHelper()
	Expect(w.lab.RemoveWebhooks(ctx)).To(Succeed())
	until(ctx, 30*time.Second, "the webhooks are not asked any more", func(ctx context.Context) error {
		if err := w.refusal(ctx); !errors.Is(err, errNotRefused) {
			return fmt.Errorf("a MachineSet that is wrong is still refused: %w", err)
		}
		return nil
	})
}

// certificate returns the data of the webhooks' certificate Secret.
func (w *world) certificate(ctx context.Context) map[string][]byte {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: certSecret}, secret)).To(Succeed())
	return secret.Data
}

// putFiles writes a Secret's data into a folder, as a kubelet does.
func putFiles(dir string, data map[string][]byte) {
	GinkgoHelper()
	for name, content := range data {
		Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
}

// servedBy returns nil if the webhooks' certificate is signed by an authority.
func (w *world) servedBy(ctx context.Context, vouching []byte) error {
	GinkgoHelper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(vouching)
	named := &tls.Config{RootCAs: pool, ServerName: webhookService + "." + lab.Namespace + ".svc"}
	connection, err := (&tls.Dialer{Config: named}).DialContext(ctx, "tcp", w.lab.WebhookAddress())
	if err != nil {
		return err
	}
	return connection.Close()
}
