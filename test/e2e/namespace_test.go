//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	leaving = "leaving"
	// leavingRights are the rights in docs/install.md beyond those in the Machines' namespace.
	leavingRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: leaving-manager, namespace: openshift-machine-api}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: leaving-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: machine-api-controllers}
subjects: [{kind: ServiceAccount, name: leaving-manager, namespace: openshift-machine-api}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leaving-manager, namespace: openshift-machine-api}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [machine-iac-controllers-leader-leaving], verbs: [get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leaving-manager, namespace: openshift-machine-api}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leaving-manager}
subjects: [{kind: ServiceAccount, name: leaving-manager, namespace: openshift-machine-api}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: machine-api-controllers, namespace: leaving}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: leaving-manager}
subjects: [{kind: ServiceAccount, name: leaving-manager, namespace: openshift-machine-api}]
---
`
	ownBinding = `
  - {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], resourceNames: [machine-api-controllers], verbs: [get, update]}
`
)

// aNamespaceThatIsDeleted runs a manager with Machines in another namespace, whose objects the real namespace
// controller deletes.
func aNamespaceThatIsDeleted() {
	var manager *lab.Manager
	names := []string{"leaving-one", "leaving-two"}

	BeforeAll(func(ctx SpecContext) {
		w.kubectl(ctx, "create", "namespace", leaving)
		Expect(w.lab.Apply(ctx, leavingRights+w.namespacedRules()+ownBinding)).To(Succeed())
		file := filepath.Join(w.dir, "leaving.kubeconfig")
		Expect(cluster.ServiceAccountKubeconfig(ctx, w.lab.Cluster.AdminKubeconfig(), lab.Namespace,
			"leaving-manager", file)).To(Succeed())
		for _, name := range []string{credentials, userDataSecret} {
			found := &corev1.Secret{}
			Expect(w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, found)).To(Succeed())
			secret := newSecret(name, found.Data)
			secret.Namespace = leaving
			Expect(w.client.Create(ctx, secret)).To(Succeed())
		}
		var err error
		manager, err = w.lab.StartInstance(ctx,
			lab.Instance{Name: leaving, Kubeconfig: file, PodNamespace: lab.Namespace},
			"--namespace="+leaving, "--leader-elect-lease-duration=15s", "--webhook-enabled=false")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(manager.Kill()).To(Succeed()) })
		for _, name := range names {
			machine := w.machine(name)
			machine.Namespace = leaving
			Expect(w.client.Create(ctx, machine)).To(Succeed())
		}
		until(ctx, patience, "its Machines run", func(ctx context.Context) error {
			var failed error
			for _, name := range names {
				machine := &machinev1beta1.Machine{}
				failed = errors.Join(failed, w.client.Get(ctx,
					client.ObjectKey{Namespace: leaving, Name: name}, machine),
					phaseIs(machine, machinev1beta1.PhaseRunning))
			}
			return failed
		})
	})

	It("stays for its instances, while no manager runs", func(ctx SpecContext) {
		Expect(manager.Kill()).To(Succeed())
		w.kubectl(ctx, "delete", "namespace", leaving, "--wait=false")
		until(ctx, patience, "everything is deleted that can be", func(ctx context.Context) error {
			namespace := &corev1.Namespace{}
			if err := w.client.Get(ctx, client.ObjectKey{Name: leaving}, namespace); err != nil {
				return err
			}
			for _, condition := range namespace.Status.Conditions {
				if condition.Type == corev1.NamespaceFinalizersRemaining && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("the conditions are %v", namespace.Status.Conditions)
		})
		for _, name := range names {
			Expect(w.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{})).To(Succeed())
		}
	})

	It("ends by itself when a manager leads, and its instances too", func(ctx SpecContext) {
		var err error
		manager, err = manager.Restart(ctx)
		Expect(err).NotTo(HaveOccurred())
		until(ctx, patience, "the namespace is gone", func(ctx context.Context) error {
			err := w.client.Get(ctx, client.ObjectKey{Name: leaving}, &corev1.Namespace{})
			if !apierrors.IsNotFound(err) {
				return errors.Join(err, errors.New("it is there"))
			}
			return nil
		})
		for _, name := range names {
			err := w.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the Node %s: %v", name, err)
		}
		w.kubectl(ctx, "delete", "clusterrolebinding/leaving-manager", "clusterrole/leaving-manager")
	})
}

// namespacedRules returns a ClusterRole with the manager's rights in the Machines' namespace. Callers may append rules.
func (w *world) namespacedRules() string {
	GinkgoHelper()
	content, err := os.ReadFile(w.lab.Path("install", "controllers", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	role, _, found := strings.Cut(string(content), "\n---\n")
	Expect(found).To(BeTrue())
	_, rules, found := strings.Cut(role, "\nrules:\n")
	Expect(found).To(BeTrue())
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: leaving-manager}\nrules:\n" +
		strings.TrimRight(rules, "\n")
}
