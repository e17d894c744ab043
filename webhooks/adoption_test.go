package webhooks_test

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/test/suite"
	"github.com/machine-iac/machine-iac-operator/webhooks"
)

const (
	// adopter may adopt besides what tenant may; oneAdopter may adopt the Machine "one".
	adopter, oneAdopter = "adopter", "one-adopter"
	asked               = "machine-iac.io/adoption"
	askedID             = "machine-iac.io/adopt-id"
	grantedBy           = "machine-iac.io/adoption-granted"
)

// requests are the annotations that ask for an adoption.
var requests = map[string]string{
	asked: "Adopt", askedID: "i-1", "machine-iac.io/adopt-from": "lineage address",
	"machine-iac.io/adoption-requested-at": "2026-03-01T12:00:00Z",
}

// hostile is a write that would have the operator adopt an instance.
type hostile struct {
	// before is what an administrator has created; nil for an object that the write creates.
	before client.Object
	// now is the object as it is to be.
	now client.Object
	// field is what the refusal names, asks says that the write needs a grant.
	field string
	asks  bool
}

// hostiles returns every way to ask for an adoption, by what it does.
func hostiles(namespace string) map[string]hostile {
	all := map[string]hostile{}
	both := func(what, field string, asks bool, plain client.Object, edit func(client.Object)) {
		created, changed := plain.DeepCopyObject().(client.Object), plain.DeepCopyObject().(client.Object)
		edit(created)
		edit(changed)
		created.SetName(plain.GetName() + "-created")
		all["creates "+what] = hostile{now: created, field: field, asks: asks}
		all["changes "+what] = hostile{before: plain, now: changed, field: field, asks: asks}
	}
	machine := func(what, field string, asks bool, edit func(*machinev1beta1.Machine)) {
		both("a Machine with "+what, field, asks, machineWith(namespace, with(nil)), func(o client.Object) {
			edit(o.(*machinev1beta1.Machine))
		})
	}
	set := func(what, field string, asks bool, edit func(*machinev1beta1.MachineSet)) {
		both(what, field, asks, setWith(namespace, with(nil)), func(o client.Object) { edit(o.(*machinev1beta1.MachineSet)) })
	}
	for name, value := range requests {
		annotations, field := map[string]string{name: value}, "metadata.annotations["+name+"]"
		asks := name == asked || name == askedID
		machine(name, field, asks, func(m *machinev1beta1.Machine) { m.Annotations = annotations })
		set("a MachineSet with "+name, field, asks, func(s *machinev1beta1.MachineSet) { s.Annotations = annotations })
		set("a template with "+name, "spec.template."+field, asks, func(s *machinev1beta1.MachineSet) {
			s.Spec.Template.Annotations = annotations
		})
	}
	id := ptr.To("kubemark://one")
	machine("a provider ID", "spec.providerID", false, func(m *machinev1beta1.Machine) { m.Spec.ProviderID = id })
	set("a template with a provider ID", "spec.template.spec.providerID", false, func(s *machinev1beta1.MachineSet) {
		s.Spec.Template.Spec.ProviderID = id
	})
	return all
}

// write creates or patches in the name of a user, and returns the object as it is stored.
func (h hostile) write(ctx context.Context, by client.Client) (client.Object, error) {
	now := h.now.DeepCopyObject().(client.Object)
	if h.before == nil {
		return now, by.Create(ctx, now)
	}
	patch, err := client.MergeFrom(h.before).Data(now)
	Expect(err).NotTo(HaveOccurred())
	target := h.before.DeepCopyObject().(client.Object)
	return target, by.Patch(ctx, target, client.RawPatch("application/merge-patch+json", patch))
}

var _ = Describe("Adoptions", func() {
	var namespace, self string

	BeforeEach(func(ctx context.Context) {
		namespace = suite.Namespace(ctx, plane)
		self = "system:serviceaccount:" + namespace + ":machine-api-controllers"
		machines := mayOf("create", "get", "update", "patch", "delete")
		adopt := mayOf("adopt")
		one := adopt
		one.ResourceNames = []string{"one"}
		Expect(plane.Grant(ctx, namespace, tenant, machines)).To(Succeed())
		Expect(plane.Grant(ctx, namespace, oneAdopter, machines, one)).To(Succeed())
		Expect(plane.Grant(ctx, namespace, adopter, adopt, machines)).To(Succeed())
		Expect(plane.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "self"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: tenant},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "machine-api-controllers"}},
		})).To(Succeed())
	})

	machine := func(name string, mods ...func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
		return machineWith(namespace, with(nil), append(mods, func(m *machinev1beta1.Machine) { m.Name = name })...)
	}
	adopting := func(m *machinev1beta1.Machine) {
		m.Annotations, m.Spec.ProviderID = map[string]string{asked: "Adopt"}, ptr.To("kubemark://"+m.Name)
	}
	live := func(ctx context.Context, object client.Object) client.Object {
		GinkgoHelper()
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		return object
	}

	Context("while the webhooks run", func() {
		BeforeEach(func(ctx context.Context) {
			start(ctx, func(o *webhooks.Options) { o.Self = self })
		})

		It("are refused to who may only write Machines, and granted to who may adopt", func(ctx context.Context) {
			for what, h := range hostiles(namespace) {
				By("somebody who " + what)
				if h.before != nil {
					Expect(plane.Client.Create(ctx, h.before.DeepCopyObject().(client.Object))).To(Succeed())
				}
				_, err := h.write(ctx, as(tenant))
				Expect(err).To(MatchError(And(
					HavePrefix(`admission webhook "adoption.machine.openshift.io" denied the request: `+h.field),
					ContainSubstring(`user "tenant" may not adopt machines.machine.openshift.io in namespace `+namespace),
					HaveSuffix(" -n "+namespace+` --clusterrole=machine-api-adopter --user="tenant"`),
				)), what)
				stored, err := h.write(ctx, as(adopter))
				Expect(err).NotTo(HaveOccurred(), what)
				Expect(adoption.GrantOf(installed, stored) != nil).To(Equal(h.asks), what)
			}
		})

		It("name the service account that lacks the right", func(ctx context.Context) {
			writer := "system:serviceaccount:" + namespace + ":writer"
			Expect(plane.Grant(ctx, namespace, writer, mayOf("create"))).To(Succeed())
			err := as(writer).Create(ctx, machine("one", adopting))
			Expect(err).To(MatchError(HaveSuffix("--serviceaccount=" + namespace + ":writer")))
		})

		It("are granted with the user, before the API server has chosen a UID", func(ctx context.Context) {
			made := machine("one", adopting)
			Expect(as(adopter).Create(ctx, made)).To(Succeed())
			granted := adoption.GrantOf(installed, made)
			Expect(granted).NotTo(BeNil())
			Expect(granted.User).To(Equal(adopter))
			Expect(granted.UID).To(BeEmpty())
			again := map[string]any{"machine-iac.io/adoption-requested-at": "2026-03-01T12:00:00Z"}
			Expect(patchAs(ctx, adopter, made, again)).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, made)).UID).To(Equal(made.UID))
		})

		It("may be a right on one Machine", func(ctx context.Context) {
			Expect(as(oneAdopter).Create(ctx, machine("one", adopting))).To(Succeed())
			Expect(as(oneAdopter).Create(ctx, machine("two", adopting))).To(MatchError(ContainSubstring("may not adopt")))
			set := hostiles(namespace)["creates a MachineSet with "+asked].now
			Expect(as(oneAdopter).Create(ctx, set)).To(MatchError(ContainSubstring("may not adopt")))
		})

		It("keep their grant while others edit the Machine, who cannot change the request", func(ctx context.Context) {
			made := machine("one", adopting)
			Expect(as(adopter).Create(ctx, made)).To(Succeed())
			Expect(patchAs(ctx, tenant, made, map[string]any{"note": "x"})).To(Succeed())
			Expect(as(tenant).Get(ctx, client.ObjectKeyFromObject(made), made)).To(Succeed())
			made.Spec.Labels = map[string]string{"a": "b"}
			Expect(as(tenant).Update(ctx, made)).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, made))).NotTo(BeNil())
			for _, change := range []map[string]any{
				{asked: nil}, {asked: "Plan"}, {asked: "Release"}, {askedID: "i-2"},
				{askedID: "i-2", grantedBy: made.Annotations[grantedBy]},
			} {
				Expect(patchAs(ctx, tenant, made, change)).To(MatchError(ContainSubstring("may not adopt")), "%v", change)
			}
			made.Spec.ProviderID = ptr.To("kubemark://two")
			Expect(as(tenant).Update(ctx, made)).To(MatchError(ContainSubstring("spec.providerID: user")))
			made.Spec.ProviderID = nil
			Expect(as(tenant).Update(ctx, made)).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, made))).To(BeNil(), "it was for another instance")
		})

		It("are not granted by a copied grant, nor without one", func(ctx context.Context) {
			made, bare := machine("one", adopting), machine("two")
			Expect(as(adopter).Create(ctx, made)).To(Succeed())
			Expect(as(tenant).Create(ctx, bare)).To(Succeed())
			Expect(patchAs(ctx, tenant, bare, map[string]any{grantedBy: made.Annotations[grantedBy]})).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, bare))).To(BeNil())
			Expect(patchAs(ctx, tenant, made, map[string]any{grantedBy: nil})).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, made))).To(BeNil())
			Expect(patchAs(ctx, adopter, made, map[string]any{askedID: "i-2"})).To(Succeed())
			Expect(adoption.GrantOf(installed, live(ctx, made))).NotTo(BeNil())
		})

		It("need a name", func(ctx context.Context) {
			unnamed := machine("", adopting)
			unnamed.GenerateName = "worker-"
			Expect(as(adopter).Create(ctx, unnamed)).To(MatchError(ContainSubstring("set metadata.name instead")))
		})

		It("are neither asked of the operator's own account nor granted to it", func(ctx context.Context) {
			template := setWith(namespace, with(nil))
			template.Spec.Template.Annotations = map[string]string{asked: "Plan"}
			Expect(as(adopter).Create(ctx, template)).To(Succeed())
			made := machine("of-the-set", func(m *machinev1beta1.Machine) { m.Annotations = template.Spec.Template.Annotations })
			Expect(as(self).Create(ctx, made)).To(Succeed())
			Expect(made.Annotations).NotTo(HaveKey(grantedBy))
			provided := map[string]any{"spec": map[string]any{"providerID": "kubemark://made"}}
			Expect(patchOf(ctx, as(self), made, provided)).To(Succeed())
			Expect(adoption.GrantOf(installed, template)).NotTo(BeNil(), "the MachineSet has the grant")
		})
	})

	It("that came in while no webhook ran have no grant that counts", func(ctx context.Context) {
		stop := start(ctx)
		granted := machine("granted", adopting)
		Expect(as(adopter).Create(ctx, granted)).To(Succeed())
		stop()
		grant := granted.Annotations[grantedBy]
		now := granted.CreationTimestamp.Time
		foreign, err := adoption.NewGrant(installation.Generate(), machine("forged", adopting), adopter, now)
		Expect(err).NotTo(HaveOccurred())
		with := func(value string) func(*machinev1beta1.Machine) {
			return func(m *machinev1beta1.Machine) { m.Annotations[grantedBy] = value }
		}
		late := []*machinev1beta1.Machine{
			machine("plain", adopting), machine("copied", adopting, with(grant)), machine("forged", adopting, with(foreign)),
			machine("same-instance", adopting, with(grant), func(m *machinev1beta1.Machine) {
				m.Spec.ProviderID = granted.Spec.ProviderID
			}),
		}
		unwatched(ctx, late[0], late[1], late[2], late[3])
		for _, one := range late {
			Expect(adoption.GrantOf(installed, live(ctx, one))).To(BeNil(), one.Name)
		}
		Expect(adoption.GrantOf(installed, live(ctx, granted))).NotTo(BeNil())
	})
})

// mayOf returns a rule about Machines and MachineSets.
func mayOf(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{machinev1beta1.GroupName}, Resources: []string{"machines", "machinesets"}, Verbs: verbs,
	}
}

// patchAs merges annotations into an object in the name of a user.
func patchAs(ctx context.Context, name string, object client.Object, annotations map[string]any) error {
	return patchOf(ctx, as(name), object, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

func patchOf(ctx context.Context, by client.Client, object client.Object, fields map[string]any) error {
	GinkgoHelper()
	patch, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return by.Patch(ctx, object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", patch))
}
