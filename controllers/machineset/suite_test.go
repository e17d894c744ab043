package machineset_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestMachineSetAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MachineSet controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// startManager runs the controller on one namespace until stop is called; the test's end calls it
// too.
func startManager(namespace string, changes ...func(*machineset.Options, manager.Manager)) (stop func()) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, namespace)
	var options machineset.Options
	for _, change := range changes {
		change(&options, mgr)
	}
	Expect(machineset.SetupWithManager(context.Background(), mgr, options)).To(Succeed())
	return suite.Run(mgr)
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.Namespace(ctx, plane)
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(plane.Create(ctx, objects...)).To(Succeed())
}

// living returns the Machines of a namespace that are not being deleted.
func living(ctx context.Context, namespace string) []machinev1beta1.Machine {
	GinkgoHelper()
	list := &machinev1beta1.MachineList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	out := list.Items[:0]
	for _, machine := range list.Items {
		if machine.DeletionTimestamp.IsZero() {
			out = append(out, machine)
		}
	}
	return out
}

func statusOf(ctx context.Context, set *machinev1beta1.MachineSet) func() machinev1beta1.MachineSetStatus {
	return func() machinev1beta1.MachineSetStatus {
		GinkgoHelper()
		fresh := &machinev1beta1.MachineSet{}
		Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(set), fresh)).To(Succeed())
		return fresh.Status
	}
}

// scale asks for so many replicas through the scale subresource.
func scale(ctx context.Context, set *machinev1beta1.MachineSet, to int32) {
	GinkgoHelper()
	wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: to}}
	Eventually(func() error { // the controller may write the status at the same moment
		return plane.Client.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(wanted))
	}).Should(Succeed())
}

// notes returns what the events with a reason say.
func notes(ctx context.Context, namespace, reason string) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	var out []string
	for _, event := range list.Items {
		if event.Reason == reason {
			out = append(out, event.Note)
		}
	}
	return out
}
