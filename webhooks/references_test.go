package webhooks_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
	"github.com/machine-iac/machine-iac-operator/webhooks"
)

// Users of these tests. Both may write Machines; the owner may get the Secret "plain" too.
const (
	tenant      = "tenant"
	owner       = "owner"
	ownersGroup = "owners"
)

// as returns a client in the name of a user.
func as(name string, groups ...string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	acting, err := client.New(config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return acting
}

// naming returns a providerSpec that names a Secret for user data, and labelled credentials.
func naming(userData string) map[string]any {
	return with(map[string]any{"credentialsSecret": map[string]any{"name": "labelled"}, "userDataSecret": map[string]any{"name": userData}})
}

// held holds providerSpecs to a policy.
func held(mode references.Mode) func(*webhooks.Options) {
	return func(o *webhooks.Options) { o.References = references.New(mode) }
}

var _ = Describe("References to Secrets", func() {
	const path = "providerSpec.userDataSecret"
	var namespace string

	secret := func(ctx context.Context, name string, labels map[string]string) {
		GinkgoHelper()
		made := builder.In(namespace, builder.Secret(func(s *corev1.Secret) { s.Name, s.Labels = name, labels }))
		Expect(plane.Client.Create(ctx, made)).To(Succeed())
	}
	create := func(ctx context.Context, by client.Client, userData string) error {
		return by.Create(ctx, machineWith(namespace, naming(userData)))
	}

	BeforeEach(func(ctx context.Context) {
		namespace = suite.Namespace(ctx, plane)
		secret(ctx, "labelled", map[string]string{references.Label: "true"})
		secret(ctx, "credentials-only", map[string]string{references.Label: "credentials"})
		secret(ctx, "plain", nil)
		machines := rbacv1.PolicyRule{APIGroups: []string{machinev1beta1.GroupName}, Resources: []string{"machines", "machinesets"}, Verbs: []string{"create", "get", "update", "patch", "delete"}}
		plain := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"plain", "late"}, Verbs: []string{"get"}}
		Expect(plane.Grant(ctx, namespace, tenant, machines)).To(Succeed())
		Expect(plane.Grant(ctx, namespace, owner, machines, plain)).To(Succeed())
		Expect(plane.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ownersGroup},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: owner},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: ownersGroup}},
		})).To(Succeed())
	})

	Context("that must be labelled", func() {
		BeforeEach(func(ctx context.Context) { start(ctx, held(references.Labelled)) })

		It("are refused without the label, with the field and the command", func(ctx context.Context) {
			for _, by := range []client.Client{as(tenant), as(owner), plane.Client} {
				err := create(ctx, by, "plain")
				Expect(causes(err)).To(HaveKeyWithValue(path, And(ContainSubstring("the Secret plain may not be used for user data: it has no label"),
					ContainSubstring("kubectl label secret plain "+references.Label+"=user-data"))))
			}
		})
		It("are taken with it, for the use that it names", func(ctx context.Context) {
			Expect(create(ctx, as(tenant), "labelled")).To(Succeed())
			Expect(causes(create(ctx, as(tenant), "credentials-only"))).To(HaveKeyWithValue(path, ContainSubstring(`is "credentials"`)))
		})
		It("are taken by the names of OpenShift", func(ctx context.Context) {
			secret(ctx, "aws-cloud-credentials", nil)
			Expect(create(ctx, as(tenant), "worker-user-data")).To(Succeed())
			Expect(causes(create(ctx, as(tenant), "aws-cloud-credentials"))).To(HaveKey(path))
		})
		It("are refused in a MachineSet", func(ctx context.Context) {
			Expect(causes(as(tenant).Create(ctx, setWith(namespace, naming("plain"))))).To(HaveKey(path))
			Expect(as(tenant).Create(ctx, setWith(namespace, naming("labelled")))).To(Succeed())
		})
		It("are taken where they are not there yet, as they may come with the label", func(ctx context.Context) {
			Expect(create(ctx, as(tenant), "later")).To(Succeed())
			Expect(causes(create(ctx, as(tenant), "tfstate-default-later"))).To(HaveKey(path))
		})
		It("are never taken to what the operator keeps", func(ctx context.Context) {
			secret(ctx, "tfstate-default-m1", map[string]string{references.Label: "true", "machine-iac.io/state": "head"})
			Expect(causes(create(ctx, plane.Client, "tfstate-default-m1"))).To(HaveKeyWithValue(path, ContainSubstring("it holds the state of a Machine; name another Secret")))
		})
		It("stay where they were there before, and nothing holds a deletion up", func(ctx context.Context) {
			machine := machineWith(namespace, naming("labelled"), func(m *machinev1beta1.Machine) { m.Finalizers = []string{machinev1beta1.MachineFinalizer} })
			Expect(as(tenant).Create(ctx, machine)).To(Succeed())
			bare := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "labelled"}}
			Expect(plane.Client.Patch(ctx, bare, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`)))).To(Succeed())
			edit := func(fields map[string]any) error {
				GinkgoHelper()
				Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(Succeed())
				machine.Spec.ProviderSpec.Value = builder.ProviderSpec(fields)
				return as(tenant).Update(ctx, machine)
			}
			more := naming("labelled")
			more["zone"] = "z"
			Expect(edit(more)).To(Succeed())
			more["userDataSecret"] = map[string]any{"name": "plain"}
			Expect(causes(edit(more))).To(And(HaveLen(1), HaveKey(path)))
			Expect(as(tenant).Delete(ctx, machine)).To(Succeed())
			Expect(plane.Client.Patch(ctx, machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
			Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(machine), machine)).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
		})
	})

	Context("that are reviewed", func() {
		BeforeEach(func(ctx context.Context) { start(ctx, held(references.Reviewed)) })

		It("are refused to users who may not get the Secret", func(ctx context.Context) {
			Expect(causes(create(ctx, as(tenant), "plain"))).To(HaveKeyWithValue(path, ContainSubstring("and tenant may not get it")))
			Expect(causes(as(tenant).Create(ctx, setWith(namespace, naming("plain"))))).To(HaveKey(path))
			Expect(causes(create(ctx, as(tenant), "late"))).To(HaveKey(path), "which may be made at any time")
		})
		It("are taken from users who may, by themselves and by their groups", func(ctx context.Context) {
			for _, by := range []client.Client{as(owner), as("member", ownersGroup)} {
				Eventually(create).WithArguments(ctx, by, "plain").Should(Succeed())
				Expect(create(ctx, by, "late")).To(Succeed())
			}
			Expect(as(owner).Create(ctx, setWith(namespace, naming("plain")))).To(Succeed())
		})
		It("are taken by the label and the names of OpenShift from whomever", func(ctx context.Context) {
			Expect(create(ctx, as(tenant), "labelled")).To(Succeed())
			Expect(create(ctx, as(tenant), "worker-user-data")).To(Succeed())
		})
		It("are never taken to what the operator keeps, from an administrator either", func(ctx context.Context) {
			Expect(causes(create(ctx, plane.Client, "machine-iac-pulumi-keys"))).To(HaveKeyWithValue(path, ContainSubstring("the operator's own")))
		})
	})

	It("are free where any may be named", func(ctx context.Context) {
		start(ctx, held(references.Any))
		Expect(create(ctx, as(tenant), "plain")).To(Succeed())
		Expect(causes(create(ctx, as(tenant), "machine-iac-webhook-cert"))).To(HaveKey(path))
	})
})
