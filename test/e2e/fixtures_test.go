//go:build e2e

package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
)

const (
	setName        = "hollow"
	credentials    = "kubemark-credentials"
	proxySecret    = "proxy-credentials"
	userDataSecret = "worker-user-data"
)

func randomText() string { return strings.ToLower(rand.Text()) }

// makeSecrets creates the fixtures' Secrets: user data, and credentials that use the proxy.
func (w *world) makeSecrets(ctx context.Context) error {
	own := &corev1.Secret{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: credentials}, own); err != nil {
		return err
	}
	for _, secret := range []*corev1.Secret{
		newSecret(userDataSecret, map[string][]byte{"userData": []byte(w.userData)}),
		newSecret(proxySecret, map[string][]byte{
			"server": []byte(w.proxy.Address()), "ca.crt": w.proxy.Authority(), "token": own.Data["token"],
		}),
	} {
		if err := w.client.Create(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: lab.Namespace, Name: name, Labels: map[string]string{references.Label: "true"},
	}, Data: data}
}

// copySecret copies the credentials to another Secret.
func (w *world) copySecret(ctx context.Context, name string) {
	GinkgoHelper()
	own := &corev1.Secret{}
	Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: credentials}, own)).To(Succeed())
	w.create(ctx, newSecret(name, own.Data))
}

// label sets the label that lets Machines use a Secret, to a JSON value.
func (w *world) label(ctx context.Context, secret, value string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+references.Label+`":`+value+`}}}`))
	Expect(w.client.Patch(ctx, newSecret(secret, nil), patch)).To(Succeed())
}

// machineSet returns the example of the engine's kubemark, with user data.
func (w *world) machineSet(replicas int32) *machinev1beta1.MachineSet {
	return w.machineSetOn(on, replicas)
}

func (w *world) machineSetOn(engine machinery, replicas int32) *machinev1beta1.MachineSet {
	GinkgoHelper()
	set := exampleSet(engine.example)
	Expect(set.Name).To(Equal(setName))
	set.Spec.Replicas = &replicas
	changeSpec(&set.Spec.Template.Spec, userDataFrom(userDataSecret))
	return set
}

func exampleSet(file string) *machinev1beta1.MachineSet {
	GinkgoHelper()
	content, err := os.ReadFile(w.lab.Path(file))
	Expect(err).NotTo(HaveOccurred())
	set := &machinev1beta1.MachineSet{}
	Expect(yaml.UnmarshalStrict(content, set)).To(Succeed())
	return set
}

// renamed returns a MachineSet with another name and its own selector.
func renamed(set *machinev1beta1.MachineSet, name string) *machinev1beta1.MachineSet {
	set.Name = name
	for _, labels := range []map[string]string{set.Spec.Selector.MatchLabels, set.Spec.Template.Labels} {
		labels["machine.openshift.io/cluster-api-machineset"] = name
	}
	return set
}

// machine returns a standalone Machine like those of the MachineSet.
func (w *world) machine(name string, changes ...func(map[string]any)) *machinev1beta1.Machine {
	GinkgoHelper()
	return w.machineOn(on, name, changes...)
}

func (w *world) machineOn(engine machinery, name string, changes ...func(map[string]any)) *machinev1beta1.Machine {
	GinkgoHelper()
	return (&fleet{w.machineSetOn(engine, 0)}).alone(name, changes...)
}

func changeSpec(spec *machinev1beta1.MachineSpec, changes ...func(map[string]any)) {
	GinkgoHelper()
	fields := map[string]any{}
	Expect(json.Unmarshal(spec.ProviderSpec.Value.Raw, &fields)).To(Succeed())
	for _, change := range changes {
		change(fields)
	}
	raw, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
}

// with sets a field of a providerSpec, wherever its kind has it.
func with(field string, value any) func(map[string]any) {
	return func(spec map[string]any) { placed(spec, field)[field] = value }
}

func userDataFrom(secret string) func(map[string]any) {
	return with("userDataSecret", map[string]any{"name": secret})
}

func credentialsFrom(secret string) func(map[string]any) {
	return with("credentialsSecret", map[string]any{"name": secret})
}

func (w *world) create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(w.client.Create(ctx, object)).To(Succeed())
	}
}

// patchSpec changes a field of a Machine's providerSpec, as kubectl edit does.
func (w *world) patchSpec(ctx context.Context, name, field string, value any) {
	GinkgoHelper()
	w.patchSpecOn(ctx, on, name, field, value)
}

func (w *world) patchSpecOn(ctx context.Context, engine machinery, name, field string, value any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{
		"spec": map[string]any{"providerSpec": map[string]any{"value": engine.patch(map[string]any{field: value})}},
	})
	Expect(err).NotTo(HaveOccurred())
	w.kubectl(ctx, "patch", "machine", name, "--type=merge", "--patch", string(patch))
}

// replicas creates the MachineSet if missing, scales it, and waits until it settles. Chapters start with it.
func (w *world) replicas(ctx context.Context, count int32) {
	GinkgoHelper()
	err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: setName}, &machinev1beta1.MachineSet{})
	if client.IgnoreNotFound(err) == nil && err != nil {
		w.create(ctx, w.machineSet(count))
	}
	w.scale(ctx, count)
	w.settles(ctx, int(count))
}

func (w *world) scale(ctx context.Context, count int32) {
	GinkgoHelper()
	w.kubectl(ctx, "scale", "machineset", setName, fmt.Sprintf("--replicas=%d", count))
}
