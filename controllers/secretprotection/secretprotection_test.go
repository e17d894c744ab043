package secretprotection_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/secretprotection"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestSecretProtection(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Secret protection controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })

const (
	shared     = "keys"
	binding    = "rights"
	stateLabel = "example.com/state"
)

// world is a namespace with the controller on it.
type world struct{ namespace string }

func start(ctx SpecContext) *world {
	GinkgoHelper()
	w := prepare(ctx)
	w.run(ctx)
	return w
}

func prepare(ctx context.Context) *world {
	GinkgoHelper()
	return &world{namespace: suite.Namespace(ctx, plane)}
}

func (w *world) run(ctx context.Context) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, w.namespace)
	Expect(secretprotection.SetupWithManager(ctx, mgr, secretprotection.Options{
		Shared: []string{shared}, Binding: types.NamespacedName{Namespace: w.namespace, Name: binding}, StateLabel: stateLabel,
	})).To(Succeed())
	suite.Run(mgr)
}

// secret makes a Secret.
func (w *world) secret(ctx context.Context, name string) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: name, Finalizers: []string{"example.com/other"}}
	Expect(plane.Create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"key": "old"}})).To(Succeed())
}

// machine makes a Machine with a providerSpec, which stays when it is deleted until gone is called.
func (w *world) machine(ctx context.Context, spec string) *machinev1beta1.Machine {
	GinkgoHelper()
	machine := builder.Machine(builder.WithFinalizer())
	machine.Namespace = w.namespace
	machine.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(spec)}
	Expect(plane.Create(ctx, machine)).To(Succeed())
	return machine
}

func naming(name string) string {
	return fmt.Sprintf(`{"kind":"Any","credentialsSecret":{"name":%q}}`, name)
}

func (w *world) gone(ctx context.Context, machine *machinev1beta1.Machine) {
	GinkgoHelper()
	Expect(plane.Client.Delete(ctx, machine)).To(Succeed())
	Expect(plane.Client.Patch(ctx, machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}

// protected reports whether a Secret has the finalizer; others that it has stay in any case.
func (w *world) protected(ctx context.Context, name string) func(Gomega) bool {
	return func(g Gomega) bool {
		secret := &corev1.Secret{}
		g.Expect(plane.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, secret)).To(Succeed())
		g.Expect(secret.Finalizers).To(ContainElement("example.com/other"))
		return len(secret.Finalizers) > 1 && secret.Finalizers[1] == secretprotection.Finalizer
	}
}

// letGo takes the finalizer of another software off, and returns whether the Secret is gone.
func (w *world) letGo(ctx context.Context, name string) bool {
	GinkgoHelper()
	key, secret := types.NamespacedName{Namespace: w.namespace, Name: name}, &corev1.Secret{}
	Expect(plane.Client.Get(ctx, key, secret)).To(Succeed())
	secret.Finalizers = secret.Finalizers[1:]
	Expect(plane.Client.Update(ctx, secret)).To(Succeed())
	return apierrors.IsNotFound(plane.Client.Get(ctx, key, secret))
}

// deleteNamespace does what the API server and the namespace controller do to Secrets.
func (w *world) deleteNamespace(ctx context.Context) {
	GinkgoHelper()
	Expect(plane.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
	Expect(plane.Client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(w.namespace))).To(Succeed())
}

var _ = Describe("A Secret", func() {
	It("is protected while a Machine names it, in whichever field, and those that all need while there is one", func(ctx SpecContext) {
		w := start(ctx)
		for _, name := range []string{"a", "b", "c", "d", shared} {
			w.secret(ctx, name)
		}
		Consistently(w.protected(ctx, shared)).Should(BeFalse())
		one := w.machine(ctx, `{"kind":"Any","credentialsSecret":{"name":"a"},"userDataSecret":{"name":"b"},"disks":[{"keySecret":"c"}],"name":"d"}`)
		for _, name := range []string{"a", "b", "c", shared} {
			Eventually(w.protected(ctx, name)).Should(BeTrue(), name)
		}
		Consistently(w.protected(ctx, "d")).Should(BeFalse())
		two := w.machine(ctx, naming("a"))
		w.gone(ctx, one)
		Eventually(w.protected(ctx, "b")).Should(BeFalse())
		Eventually(w.protected(ctx, "c")).Should(BeFalse())
		Consistently(w.protected(ctx, "a")).Should(BeTrue())
		two.Spec.ProviderSpec.Value.Raw = []byte(naming("d"))
		Expect(plane.Client.Update(ctx, two)).To(Succeed())
		Eventually(w.protected(ctx, "a")).Should(BeFalse())
		Eventually(w.protected(ctx, "d")).Should(BeTrue())
		Eventually(w.protected(ctx, shared)).Should(BeTrue())
		w.gone(ctx, two)
		Eventually(w.protected(ctx, "d")).Should(BeFalse())
		Eventually(w.protected(ctx, shared)).Should(BeFalse())
	})

	It("that is made after its Machine is protected, and its owner may write it", func(ctx SpecContext) {
		w := start(ctx)
		machine := w.machine(ctx, naming("a"))
		w.secret(ctx, "a")
		Eventually(w.protected(ctx, "a")).Should(BeTrue())
		secret := &corev1.Secret{}
		key := types.NamespacedName{Namespace: w.namespace, Name: "a"}
		Expect(plane.Client.Get(ctx, key, secret)).To(Succeed())
		secret.Data["key"] = []byte("new")
		Expect(plane.Client.Update(ctx, secret)).To(Succeed())
		machine.Spec.ProviderSpec.Value.Raw = []byte(`{"kind":"Any","credentialsSecret":{"name":"a"},"size":2}`)
		Expect(plane.Client.Update(ctx, machine)).To(Succeed())
		Consistently(func(g Gomega) {
			again := &corev1.Secret{}
			g.Expect(plane.Client.Get(ctx, key, again)).To(Succeed())
			g.Expect(again.ResourceVersion).To(Equal(secret.ResourceVersion), "nothing is written")
		}).Should(Succeed())
	})

	It("that is deleted by itself goes at once, though Machines name it", func(ctx SpecContext) {
		w := start(ctx)
		w.machine(ctx, naming("a"))
		w.secret(ctx, "a")
		Eventually(w.protected(ctx, "a")).Should(BeTrue())
		Expect(plane.Client.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}})).To(Succeed())
		Eventually(w.protected(ctx, "a")).Should(BeFalse())
		Expect(w.letGo(ctx, "a")).To(BeTrue())
		w.secret(ctx, "a")
		Eventually(w.protected(ctx, "a")).Should(BeTrue(), "the next of that name")
	})

	It("of a namespace that is deleted stays for the last Machine that needs it, and can be changed", func(ctx SpecContext) {
		w := start(ctx)
		one, two := w.machine(ctx, naming("a")), w.machine(ctx, naming("a"))
		for _, name := range []string{"a", "b", shared} {
			w.secret(ctx, name)
		}
		Eventually(w.protected(ctx, "a")).Should(BeTrue())
		Eventually(w.protected(ctx, shared)).Should(BeTrue())
		w.deleteNamespace(ctx)
		Expect(w.letGo(ctx, "b")).To(BeTrue())
		Consistently(w.protected(ctx, "a")).Should(BeTrue())
		secret := &corev1.Secret{}
		Expect(plane.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "a"}, secret)).To(Succeed())
		secret.Data["key"] = []byte("new")
		Expect(plane.Client.Update(ctx, secret)).To(Succeed())
		w.gone(ctx, one)
		Consistently(w.protected(ctx, "a")).Should(BeTrue())
		w.gone(ctx, two)
		Eventually(w.protected(ctx, "a")).Should(BeFalse())
		Eventually(w.protected(ctx, shared)).Should(BeFalse())
		Expect(w.letGo(ctx, "a")).To(BeTrue())
	})
})

var _ = Describe("The RoleBinding of a manager of another namespace", func() {
	protected := func(ctx context.Context, w *world) func(Gomega) bool {
		return func(g Gomega) bool {
			found := &rbacv1.RoleBinding{}
			g.Expect(plane.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: binding}, found)).To(Succeed())
			return slices.Contains(found.Finalizers, secretprotection.Finalizer)
		}
	}
	bind := func(ctx context.Context, w *world, finalizers ...string) {
		GinkgoHelper()
		Expect(plane.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: binding, Finalizers: finalizers},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		})).To(Succeed())
	}

	It("is protected while there are Machines, and while there are states", func(ctx SpecContext) {
		w := prepare(ctx)
		bind(ctx, w, secretprotection.Finalizer)
		w.run(ctx)
		Eventually(protected(ctx, w)).Should(BeFalse(), "an earlier process ended before it released it")
		one := w.machine(ctx, naming("a"))
		Eventually(protected(ctx, w)).Should(BeTrue())
		w.gone(ctx, one)
		Eventually(protected(ctx, w)).Should(BeFalse())
		two := w.machine(ctx, naming("a"))
		Eventually(protected(ctx, w)).Should(BeTrue())
		meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "state", Labels: map[string]string{stateLabel: "head"}}
		Expect(plane.Create(ctx, &corev1.Secret{ObjectMeta: meta})).To(Succeed())
		w.gone(ctx, two)
		Consistently(protected(ctx, w)).Should(BeTrue())
	})

	It("that is not there keeps no Secret from being protected", func(ctx SpecContext) {
		w := start(ctx)
		w.machine(ctx, naming("a"))
		w.secret(ctx, "a")
		Eventually(w.protected(ctx, "a")).Should(BeTrue())
	})
})
