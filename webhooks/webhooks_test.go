package webhooks_test

import (
	"context"
	"errors"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

const (
	kubemark      = "kubemarkproviderconfig.openshift.io/v1alpha1"
	kubemarkKind  = "KubemarkMachineProviderConfig"
	mutatingName  = `admission webhook "default.machine.machine.openshift.io" denied the request: `
	secretMissing = `providerSpec.credentialsSecret: Invalid value: "none": not found. Expected CredentialsSecret to exist`
)

// with returns fields of a providerSpec that are all that is required, and more.
func with(more map[string]any) map[string]any {
	fields := map[string]any{"apiVersion": kubemark, "kind": kubemarkKind, "credentialsSecret": map[string]any{"name": "c"}}
	for key, value := range more {
		fields[key] = value
	}
	return fields
}

func machineWith(namespace string, fields map[string]any, mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	set := func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = builder.ProviderSpec(fields) }
	return builder.In(namespace, builder.Machine(append([]func(*machinev1beta1.Machine){set}, mods...)...))
}

func setWith(namespace string, fields map[string]any) *machinev1beta1.MachineSet {
	return builder.In(namespace, builder.MachineSet(func(s *machinev1beta1.MachineSet) {
		s.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(fields)
	}))
}

// causes returns the fields that a refusal names, and what it says of each.
func causes(err error) map[string]string {
	GinkgoHelper()
	var refusal *apierrors.StatusError
	Expect(errors.As(err, &refusal)).To(BeTrue())
	out := map[string]string{}
	if apierrors.IsInvalid(err) { // of a MachineHealthCheck
		for _, cause := range refusal.ErrStatus.Details.Causes {
			out[cause.Field] = cause.Message
		}
		return out
	}
	Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	prefix, message, found := strings.Cut(err.Error(), "\" denied the request: ")
	Expect(found).To(BeTrue(), err.Error())
	Expect(prefix).To(HavePrefix("admission webhook \""))
	begins := field.FindAllStringSubmatchIndex(message, -1)
	Expect(strings.HasPrefix(message, "[")).To(Equal(len(begins) > 1), message)
	for n, at := range begins {
		end := len(message)
		switch {
		case n+1 < len(begins):
			end = begins[n+1][0]
		case n > 0:
			end-- // the bracket
		}
		out[message[at[2]:at[3]]] = message[at[1]:end]
	}
	return out
}

// field matches the beginning of what a refusal says of a field.
var field = regexp.MustCompile(`(?:^\[?|, )((?:providerSpec|spec|metadata)[\w.\[\]]*): `)

// patch merges a patch into an object as a user would.
func patch(ctx context.Context, object client.Object, body string) error {
	return user.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))
}

var _ = Describe("Webhooks", func() {
	var namespace string

	BeforeEach(func(ctx context.Context) {
		namespace = suite.Namespace(ctx, plane)
		secret := builder.In(namespace, builder.Secret(func(s *corev1.Secret) { s.Name = "c" }))
		Expect(plane.Client.Create(ctx, secret)).To(Succeed())
	})

	Context("when they respond", func() {
		BeforeEach(func(ctx context.Context) {
			start(ctx)
			heard.take()
		})

		It("write the cluster into a Machine that does not name it", func(ctx context.Context) {
			machine := machineWith(namespace, with(nil), func(m *machinev1beta1.Machine) { m.Labels = nil })
			Expect(user.Create(ctx, machine)).To(Succeed())
			Expect(machine.Labels).To(Equal(map[string]string{builder.ClusterLabel: builder.ClusterID}))
			Expect(heard.take()).To(BeEmpty())
		})

		It("leave nothing that GitOps would see as drift, and replicas to the autoscaler", func(ctx context.Context) {
			apply := func(object *unstructured.Unstructured, owner string, options ...client.ApplyOption) *unstructured.Unstructured {
				GinkgoHelper()
				applied := object.DeepCopy()
				Expect(user.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied),
					append(options, client.FieldOwner(owner))...)).To(Succeed())
				unstructured.RemoveNestedField(applied.Object, "metadata", "managedFields")
				return applied
			}
			labels := map[string]any{"app": "pool"}
			template := map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"providerSpec": map[string]any{"value": with(nil)}},
			}
			selector := map[string]any{"matchLabels": labels}
			for kind, spec := range map[string]map[string]any{
				"Machine":           template["spec"].(map[string]any),
				"MachineSet":        {"selector": selector, "template": template},
				"MachineDeployment": {"selector": selector, "template": template},
				"MachineHealthCheck": {"selector": selector, "unhealthyConditions": []any{
					map[string]any{"type": "Ready", "status": "False", "timeout": "300s"}}},
			} {
				manifest := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
				manifest.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind(kind))
				manifest.SetNamespace(namespace)
				manifest.SetName("pool")
				applied := apply(manifest, "gitops")
				if kind == "MachineSet" || kind == "MachineDeployment" {
					scaled := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(7)}}}
					scaled.SetGroupVersionKind(manifest.GroupVersionKind())
					scaled.SetNamespace(namespace)
					scaled.SetName("pool")
					Expect(user.Apply(ctx, client.ApplyConfigurationFromUnstructured(scaled), client.FieldOwner("autoscaler"))).
						To(Succeed(), kind)
					applied = scaled
					unstructured.RemoveNestedField(applied.Object, "metadata", "managedFields")
				}
				Expect(apply(manifest, "gitops", client.DryRunAll)).To(Equal(applied), kind)
			}
		})

		It("refuse a Machine without a providerSpec in the words of the Machine API", func(ctx context.Context) {
			machine := machineWith(namespace, nil, func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = nil })
			err := user.Create(ctx, machine)
			Expect(err).To(MatchError(HavePrefix(mutatingName)))
			Expect(causes(err)).To(Equal(map[string]string{"providerSpec.value": "Required value: a value must be provided"}))
		})

		It("name every wrong field of a template, its value and the fix", func(ctx context.Context) {
			err := user.Create(ctx, setWith(namespace, with(map[string]any{"zone": "a/b", "pods": 0, "cpu": "many"})))
			Expect(causes(err)).To(And(
				HaveLen(3),
				HaveKeyWithValue("providerSpec.zone", HavePrefix(`Invalid value: "a/b": `)),
				HaveKeyWithValue("providerSpec.pods", HaveSuffix("write it as pods: 110.")),
				HaveKeyWithValue("providerSpec.cpu", ContainSubstring("write it as cpu: 4")),
			))
		})

		It("name the kinds that are served to who asks for another", func(ctx context.Context) {
			err := user.Create(ctx, machineWith(namespace, map[string]any{"kind": "Other"}))
			Expect(causes(err)).To(HaveKeyWithValue("providerSpec.kind", HaveSuffix("known are "+kubemark+" "+kubemarkKind+", machine-iac.io/v1alpha1 TerraformMachineProviderSpec")))
		})

		It("hold the values for any module to the rules of the one that is named", func(ctx context.Context) {
			fields := func(name string, values map[string]any) map[string]any {
				return map[string]any{
					"apiVersion": "machine-iac.io/v1alpha1", "kind": "TerraformMachineProviderSpec",
					"module": name, "values": values, "credentialsSecret": map[string]any{"name": "c"},
				}
			}
			Expect(user.Create(ctx, machineWith(namespace, fields("kubemark", map[string]any{"cpu": 8})))).To(Succeed())
			Expect(heard.take()).To(BeEmpty())
			err := user.Create(ctx, setWith(namespace, fields("kubemark", map[string]any{"zone": "a/b", "architecture": "vax"})))
			Expect(causes(err)).To(And(
				HaveLen(2),
				HaveKeyWithValue("providerSpec.values.zone", HavePrefix(`Invalid value: "a/b": `)),
				HaveKeyWithValue("providerSpec.values.architecture", HavePrefix(`Unsupported value: "vax": `)),
			))
			err = user.Create(ctx, machineWith(namespace, fields("other", nil)))
			Expect(causes(err)).To(HaveKeyWithValue("providerSpec.module", HaveSuffix("known are kubemark; name one that is loaded")))
		})

		It("warn of unknown fields and of a Secret that is missing, and let the object in", func(ctx context.Context) {
			fields := with(map[string]any{"Zone": "a", "credentialsSecret": map[string]any{"name": "none"}})
			want := ConsistOf(`providerSpec.value: Unsupported value: "Zone": Unknown field (Zone) will be ignored; write it as zone`, secretMissing)
			Expect(user.Create(ctx, machineWith(namespace, fields))).To(Succeed())
			Expect(heard.take()).To(want)
			Expect(user.Create(ctx, setWith(namespace, fields))).To(Succeed())
			Expect(heard.take()).To(want)
		})

		It("keep hooks from a Machine that is being deleted, and let it go", func(ctx context.Context) {
			machine := machineWith(namespace, with(nil), builder.WithFinalizer())
			Expect(user.Create(ctx, machine)).To(Succeed())
			Expect(user.Delete(ctx, machine)).To(Succeed())
			err := patch(ctx, machine, `{"spec":{"lifecycleHooks":{"preDrain":[{"name":"Late","owner":"somebody"}]}}}`)
			Expect(causes(err)).To(Equal(map[string]string{"spec.lifecycleHooks.preDrain": "Forbidden: pre-drain hooks are immutable when " +
				"machine is marked for deletion: the following hooks are new or changed: [{Name:Late Owner:somebody}]"}))
			Expect(patch(ctx, machine, `{"metadata":{"finalizers":null}}`)).To(Succeed())
			Expect(user.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		})

		It("keep the selector of a MachineSet as it is, and let it be scaled", func(ctx context.Context) {
			set := setWith(namespace, with(nil))
			Expect(user.Create(ctx, set)).To(Succeed())
			err := patch(ctx, set.DeepCopy(), `{"spec":{"selector":{"matchLabels":{"`+builder.RoleLabel+`":"worker"}}}}`)
			Expect(causes(err)).To(Equal(map[string]string{"spec.selector": "Forbidden: selector is immutable"}))
			err = patch(ctx, set.DeepCopy(), `{"spec":{"template":{"metadata":{"labels":{"`+builder.MachineSetLabel+`":"other"}}}}}`)
			Expect(causes(err)).To(HaveKeyWithValue("spec.template.metadata.labels", HaveSuffix("labels of Machines belong in spec.template.metadata.labels")))
			Expect(patch(ctx, set, `{"spec":{"replicas":0}}`)).To(Succeed())
			Expect(heard.take()).To(BeEmpty())
		})

		It("keep out a MachineHealthCheck that the schema lets pass and that no client could read", func(ctx context.Context) {
			check := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"selector":            map[string]any{},
				"nodeStartupTimeout":  "0x",
				"unhealthyConditions": []any{map[string]any{"type": "Ready", "status": "False", "timeout": "99999999h"}},
			}}}
			check.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("MachineHealthCheck"))
			check.SetNamespace(namespace)
			check.SetName("check")
			check.SetAnnotations(map[string]string{"machine-iac.io/max-remediations-in-flight": "some"})
			Expect(causes(user.Create(ctx, check))).To(And(
				HaveLen(3),
				HaveKey("spec.nodeStartupTimeout"), HaveKey("spec.unhealthyConditions[0].timeout"),
				HaveKey("metadata.annotations[machine-iac.io/max-remediations-in-flight]"),
			))
			Expect(user.Create(ctx, builder.In(namespace, builder.MachineHealthCheck()))).To(Succeed())
		})
	})

	It("let go what came in before them, and say what is wrong with it", func(ctx context.Context) {
		machine := machineWith(namespace, with(map[string]any{"zone": "a/b"}), builder.WithFinalizer())
		nothing := machineWith(namespace, nil, builder.WithFinalizer(), func(m *machinev1beta1.Machine) { m.Spec.ProviderSpec.Value = nil })
		set := setWith(namespace, map[string]any{"kind": "Other"})
		set.Spec.Template.Labels = nil
		set.Finalizers = []string{"example.com/keep"}
		unwatched(ctx, machine, nothing, set)
		start(ctx)
		heard.take()

		Expect(patch(ctx, machine, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())
		Expect(heard.take()).To(ConsistOf(And(HavePrefix("providerSpec.zone: "), HaveSuffix("(accepted because it was there before)"))))
		Expect(patch(ctx, set, `{"spec":{"replicas":0}}`)).To(Succeed())
		Expect(heard.take()).To(HaveLen(2))
		err := patch(ctx, machine.DeepCopy(), `{"spec":{"providerSpec":{"value":{"cpu":8}}}}`)
		Expect(causes(err)).To(HaveKey("providerSpec.zone"))
		heard.take()
		for _, object := range []client.Object{machine, nothing, set} {
			Expect(user.Delete(ctx, object)).To(Succeed())
			// A patch is tried first on what the API server has cached, and webhooks with it, which
			// may be from before the deletion.
			Eventually(func(g Gomega) {
				g.Expect(user.Get(ctx, client.ObjectKeyFromObject(object), object, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})).To(Succeed())
				g.Expect(object.GetDeletionTimestamp()).NotTo(BeNil())
			}).Should(Succeed())
			Expect(patch(ctx, object, `{"metadata":{"annotations":{"a":"b"}}}`)).To(Succeed())
			Expect(patch(ctx, object, `{"metadata":{"finalizers":null}}`)).To(Succeed())
			Expect(user.Get(ctx, client.ObjectKeyFromObject(object), object)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		}
		Expect(heard.take()).To(BeEmpty())
	})
})

// unwatched stores objects as if there were no webhooks: they are taken off the API server
// meanwhile.
func unwatched(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	mutating, validating := configurations()
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(mutating), mutating)).To(Succeed())
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(validating), validating)).To(Succeed())
	for _, configuration := range []client.Object{mutating, validating} {
		Expect(plane.Client.Delete(ctx, configuration)).To(Succeed())
	}
	for _, object := range objects {
		// The API server sees with a delay that its webhooks are gone.
		Eventually(func() error { return plane.Client.Create(ctx, object) }).Should(Succeed())
	}
	mutating.ObjectMeta = metav1.ObjectMeta{Name: mutating.Name}
	validating.ObjectMeta = metav1.ObjectMeta{Name: validating.Name}
	for _, configuration := range []client.Object{mutating, validating} {
		Expect(plane.Client.Create(ctx, configuration)).To(Succeed())
	}
	// Nothing responds yet, so what is refused shows that the webhooks are back.
	for _, object := range []client.Object{
		machineWith(objects[0].GetNamespace(), with(nil)), setWith(objects[0].GetNamespace(), with(nil)),
	} {
		Eventually(func() error {
			return plane.Client.Create(ctx, object.DeepCopyObject().(client.Object), client.DryRunAll)
		}).ShouldNot(Succeed())
	}
}
