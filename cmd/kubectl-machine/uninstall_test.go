package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/install"
	"github.com/machine-iac/machine-iac-operator/internal/operator/operands"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// installation is a cluster with the operator's objects and what it has applied, and a Machine with a state. No program runs.
type installation struct {
	*world
	t *testing.T
	// applied are what the operator has applied, own what it consists of.
	applied, own []*unstructured.Unstructured
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := &installation{world: newWorld(t), t: t}
	i.namespace = operands.Namespace
	for _, arguments := range [][]string{
		{"create", "-f", repository(t, "install", "kubernetes", "namespace.yaml")}, {"apply", "-k", repository(t, "install", "kubernetes")},
	} {
		command := exec.CommandContext(t.Context(), repository(t, "bin", "kubectl"), append([]string{"--kubeconfig", i.kubeconfig}, arguments...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
	var err error
	if i.own, err = operands.Manifests(install.Operator, i.namespace); err != nil {
		t.Fatal(err)
	}
	i.applied, err = operands.Render(install.FS, operands.Inputs{Namespace: i.namespace, Version: "1.0.0", Image: "example.org/image", TerminationHandler: true})
	if err != nil {
		t.Fatal(err)
	}
	report := &unstructured.Unstructured{}
	report.SetAPIVersion("machine-iac.io/v1alpha1")
	report.SetKind("MachineAPIOperator")
	report.SetName("machine-api")
	for _, one := range slices.Concat(i.applied, i.leftovers(), []*unstructured.Unstructured{report}) {
		if err := i.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(one.DeepCopy()), client.FieldOwner("machine-api-operator")); err != nil {
			t.Fatal(err)
		}
	}
	i.own = append(i.own, report)
	machine := builder.In(i.namespace, builder.Machine(builder.WithPhase("Running")))
	machine.Name = "kept"
	if err := i.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	i.orphan(t, "gone")
	return i
}

// there returns which of the objects there are.
func (i *installation) there(objects []*unstructured.Unstructured) (names []string) {
	i.t.Helper()
	for _, one := range objects {
		err := i.Client.Get(i.t.Context(), client.ObjectKeyFromObject(one), one.DeepCopy())
		if err == nil {
			names = append(names, one.GetKind()+"/"+one.GetName())
		} else if !apierrors.IsNotFound(err) {
			i.t.Fatal(err)
		}
	}
	return names
}

// expect types a command line.
func (i *installation) expect(line string, code int, texts ...string) {
	i.t.Helper()
	got := i.ask(i.t, line)
	if got.code != code {
		i.t.Fatalf("%s ends with %d, want %d\n%s%s", line, got.code, code, got.out, got.err)
	}
	for _, text := range texts {
		if !strings.Contains(got.out+got.err, text) {
			i.t.Errorf("%s does not say %q:\n%s%s", line, text, got.out, got.err)
		}
	}
}

func (i *installation) isComplete(after string) {
	i.t.Helper()
	if now := len(i.there(i.applied)) + len(i.there(i.own)); now != len(i.applied)+len(i.own) {
		i.t.Fatalf("%d of %d objects are there after %s", now, len(i.applied)+len(i.own), after)
	}
}

func TestUninstall(t *testing.T) {
	long.Test(t)
	i := newInstallation(t)
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "machine-api-operator"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	if err := i.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	const here = " -n " + operands.Namespace
	i.expect("uninstall -n nowhere", 1, "there is no Deployment machine-api-operator", "in the namespace nowhere")
	i.expect("uninstall -n default", 1, "lacks the label app.kubernetes.io/name=machine-iac-operator: it is another operator")
	i.expect("uninstall --dry-run=yes"+here, 1, `--dry-run is "yes"; set it to none, client or server`)
	i.expect("uninstall"+here, 1, "Machines (1) and states (1) in the namespace openshift-machine-api would have no manager; nothing was removed",
		"machine/kept Running", "state with 1 resources", "--even-with-machines")
	i.isComplete("refusals")
	i.expect("uninstall --dry-run"+here, 0, "deployment.apps/machine-api-operator deleted (dry run)", "note: without --even-with-machines")
	i.expect("uninstall --dry-run=server --even-with-machines"+here, 0, "deployment.apps/machine-api-operator scaled (server dry run)",
		"mutatingwebhookconfiguration.admissionregistration.k8s.io/machine-api deleted (server dry run)", "customresourcedefinition.apiextensions.k8s.io/machines.machine.openshift.io")
	i.isComplete("dry runs")

	i.ownersAreRespected(here)
	i.podsAreWaitedFor(here)

	i.expect("uninstall --even-with-machines"+here, 0, "deployment.apps/machine-api-operator deleted", "clusterrole.rbac.authorization.k8s.io/machine-api-controllers deleted",
		"Machines (1) and states (1), MachineSets (0)", "machineapioperators.machine-iac.io")
	if left := append(i.there(i.applied), i.there(i.own)...); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
	if err := i.Client.Get(t.Context(), client.ObjectKey{Namespace: i.namespace, Name: "kept"}, builder.Machine()); err != nil {
		t.Errorf("the Machine: %v", err)
	}
	if states, err := state.New(i.Client, state.Options{}).List(t.Context(), i.namespace); err != nil || len(states) != 1 {
		t.Errorf("%d states (%v)", len(states), err)
	}
	if left := i.there(i.leftovers()); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
	i.expect("uninstall --even-with-machines"+here, 1, "nothing that it has installed in the namespace "+i.namespace)
}

// leftovers are what the operator's and the manager's Pods make for themselves.
func (i *installation) leftovers() (all []*unstructured.Unstructured) {
	for name, kind := range map[string]schema.GroupVersionKind{
		"machine-api-operator": coordinationv1.SchemeGroupVersion.WithKind("Lease"), "machine-iac-controllers-leader": coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		"machine-iac-webhook-cert": corev1.SchemeGroupVersion.WithKind("Secret"),
	} {
		one := &unstructured.Unstructured{}
		one.SetGroupVersionKind(kind)
		one.SetNamespace(i.namespace)
		one.SetName(name)
		all = append(all, one)
	}
	return all
}

func TestUninstallPurges(t *testing.T) {
	long.Test(t)
	i := newInstallation(t)
	const here = " -n " + operands.Namespace
	elsewhere := builder.In("default", builder.Machine())
	elsewhere.Name = "elsewhere"
	if err := i.Client.Create(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "machine-iac-installation"}}
	if err := i.Client.Create(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	i.expect("uninstall --purge --even-with-machines"+here, 1, "choose one")
	i.expect("uninstall --purge"+here, 1, "first delete what is in the namespace "+i.namespace+", Machines (1) and states (1)")
	i.isComplete("refusals")
	states := &corev1.SecretList{}
	if err := i.Client.List(t.Context(), states, client.InNamespace(i.namespace), client.HasLabels{state.LabelMachineUID}); err != nil || len(states.Items) == 0 {
		t.Fatalf("%d Secrets of states (%v)", len(states.Items), err)
	}
	for n := range states.Items {
		one := &states.Items[n]
		one.Finalizers = nil
		if err := errors.Join(i.Client.Update(t.Context(), one), i.Client.Delete(t.Context(), one)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Client.DeleteAllOf(t.Context(), builder.Machine(), client.InNamespace(i.namespace)); err != nil {
		t.Fatal(err)
	}
	i.expect("uninstall --purge"+here, 1, "--purge removes the CRDs, and with them Machine ")
	i.isComplete("a Machine in another namespace")
	for _, list := range []client.ObjectList{&machinev1beta1.MachineList{}, &machinev1beta1.MachineSetList{}} {
		if err := i.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			one := o.(client.Object)
			one.SetFinalizers(nil)
			return errors.Join(i.Client.Update(t.Context(), one), i.Client.Delete(t.Context(), one))
		}); err != nil {
			t.Fatal(err)
		}
	}
	i.expect("uninstall --purge"+here, 0, "secret/machine-iac-installation deleted", "customresourcedefinition.apiextensions.k8s.io/machines.machine.openshift.io deleted")
	left := &corev1.SecretList{}
	if err := i.Client.List(t.Context(), left, client.InNamespace(i.namespace)); err != nil || len(left.Items) > 0 {
		t.Errorf("%d Secrets are left (%v)", len(left.Items), err)
	}
	if there := slices.Concat(i.there(i.applied), i.there(i.leftovers())); len(there) > 0 {
		t.Errorf("these are left: %v", there)
	}
}

// ownersAreRespected expects that what another operator would restore is not removed.
func (i *installation) ownersAreRespected(here string) {
	i.t.Helper()
	operator := &appsv1.Deployment{}
	if err := i.Client.Get(i.t.Context(), client.ObjectKey{Namespace: i.namespace, Name: "machine-api-operator"}, operator); err != nil {
		i.t.Fatal(err)
	}
	operator.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "machine-iac.v1", UID: "1"}}
	if err := i.Client.Update(i.t.Context(), operator); err != nil {
		i.t.Fatal(err)
	}
	i.expect("uninstall --even-with-machines"+here, 1, "belongs to ClusterServiceVersion machine-iac.v1, which would restore it")
	i.isComplete("a refusal")
	operator.OwnerReferences = nil
	if err := i.Client.Update(i.t.Context(), operator); err != nil {
		i.t.Fatal(err)
	}
}

// podsAreWaitedFor expects the manager to keep its rights until its Pods have ended.
func (i *installation) podsAreWaitedFor(here string) {
	i.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "busy", Labels: map[string]string{
			"app.kubernetes.io/name": "machine-iac-operator", "app.kubernetes.io/component": "machine-controllers",
		}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: "default"}} // which no controller makes here
	for _, one := range []client.Object{account, pod} {
		if err := i.Client.Create(i.t.Context(), one); err != nil {
			i.t.Fatal(err)
		}
	}
	i.expect("uninstall --even-with-machines --timeout 5s"+here, 1, "the Pods of deployment.apps/machine-api-controllers have not ended in time: busy; repeat the command to go on")
	left := i.there(i.applied)
	for _, name := range []string{"ClusterRole/machine-api-controllers", "Role/machine-api-controllers", "ServiceAccount/machine-api-controllers"} {
		if !slices.Contains(left, name) {
			i.t.Errorf("%s is gone though a Pod runs", name)
		}
	}
	for _, name := range []string{"MutatingWebhookConfiguration/machine-api", "ValidatingWebhookConfiguration/machine-api", "Deployment/machine-api-controllers"} {
		if slices.Contains(left, name) {
			i.t.Errorf("%s is still there", name)
		}
	}
	operator := &appsv1.Deployment{}
	if err := i.Client.Get(i.t.Context(), client.ObjectKey{Namespace: i.namespace, Name: "machine-api-operator"}, operator); err != nil || *operator.Spec.Replicas != 0 {
		i.t.Errorf("the operator was not stopped: %v", err)
	}
	if err := i.Client.Delete(i.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		i.t.Fatal(err)
	}
}
