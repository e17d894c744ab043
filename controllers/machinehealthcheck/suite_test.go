package machinehealthcheck_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/machinehealthcheck"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var (
	plane *controlplane.ControlPlane
	// watching is a client that can be intercepted.
	watching client.WithWatch
)

func TestMachineHealthCheckAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MachineHealthCheck controller")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	plane = suite.Start(controlplane.Default)
	var err error
	watching, err = client.NewWithWatch(plane.Config, client.Options{Scheme: plane.Scheme})
	Expect(err).NotTo(HaveOccurred())
	installRebootKinds(ctx)
})

// startManager runs the controller on one namespace until stop is called; the test's end calls it
// too.
func startManager(namespace string, changes ...func(*machinehealthcheck.Options, manager.Manager)) (stop func()) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, namespace)
	var options machinehealthcheck.Options
	for _, change := range changes {
		change(&options, mgr)
	}
	Expect(machinehealthcheck.SetupWithManager(context.Background(), mgr, options)).To(Succeed())
	return suite.Run(mgr)
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	Expect(plane.Create(ctx, objects...)).To(Succeed())
}

// member is a Machine and the Node it refers to, nil for none.
type member struct {
	machine *machinev1beta1.Machine
	node    *corev1.Node
}

// onNode makes a Machine that a MachineSet owns and whose Node has had the Ready condition since
// the time given.
func onNode(namespace string, ready corev1.ConditionStatus, since time.Time, mods ...func(*machinev1beta1.Machine)) member {
	node := builder.Node(builder.WithReady(ready, since))
	return member{node: node, machine: withoutNode(namespace, append(mods, builder.WithNodeRef(node))...).machine}
}

// withoutNode makes a Machine that a MachineSet owns.
func withoutNode(namespace string, mods ...func(*machinev1beta1.Machine)) member {
	set := builder.MachineSet()
	set.UID = "00000000-0000-0000-0000-000000000001"
	return member{machine: builder.In(namespace, builder.Machine(append([]func(*machinev1beta1.Machine){builder.WithOwner(set)}, mods...)...))}
}

func (m member) create(ctx context.Context) member {
	GinkgoHelper()
	if m.node != nil {
		create(ctx, m.node)
	}
	create(ctx, m.machine)
	return m
}

// turn sets the Ready condition of the member's Node as of since.
func (m member) turn(ctx context.Context, ready corev1.ConditionStatus, since time.Time) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(m.node), node)).To(Succeed())
	builder.WithReady(ready, since)(node)
	Expect(plane.Client.Status().Update(ctx, node)).To(Succeed())
}

// living returns a function that returns which of the members' Machines are there and not being
// deleted.
func living(ctx context.Context, members ...member) func() []string {
	return func() []string {
		GinkgoHelper()
		names := []string{}
		for _, m := range members {
			machine := &machinev1beta1.Machine{}
			err := plane.Client.Get(ctx, client.ObjectKeyFromObject(m.machine), machine)
			Expect(client.IgnoreNotFound(err)).To(Succeed())
			if err == nil && machine.DeletionTimestamp.IsZero() {
				names = append(names, m.machine.Name)
			}
		}
		return names
	}
}

func statusOf(ctx context.Context, check *machinev1beta1.MachineHealthCheck) machinev1beta1.MachineHealthCheckStatus {
	GinkgoHelper()
	fresh := &machinev1beta1.MachineHealthCheck{}
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(check), fresh)).To(Succeed())
	return fresh.Status
}

// conditionOf returns a condition of the stored MachineHealthCheck as "status reason", empty when
// it has none.
func conditionOf(ctx context.Context, check *machinev1beta1.MachineHealthCheck, kind machinev1beta1.ConditionType) func() string {
	return func() string {
		GinkgoHelper()
		condition := machineapi.FindCondition(statusOf(ctx, check).Conditions, kind)
		if condition == nil {
			return ""
		}
		return strings.TrimSpace(fmt.Sprintf("%s %s", condition.Status, condition.Reason))
	}
}

// passes drives a controller without a manager: one reconcile at a time at a time of the test's
// choice, with every write and every event noted.
type passes struct {
	clock      *clocktesting.FakePassiveClock
	recorder   *events.FakeRecorder
	controller *machinehealthcheck.Controller
	metrics    *machinehealthcheck.Metrics
	check      *machinev1beta1.MachineHealthCheck

	mu     sync.Mutex
	writes []string
}

func byHand(check *machinev1beta1.MachineHealthCheck, now time.Time, changes ...func(*machinehealthcheck.Options)) *passes {
	GinkgoHelper()
	p := &passes{
		clock: clocktesting.NewFakePassiveClock(now), recorder: events.NewFakeRecorder(100),
		metrics: machinehealthcheck.NewMetrics(), check: check,
	}
	options := machinehealthcheck.Options{
		Common:  pipeline.Common{Client: p.noting(watching), Reader: plane.Client, Recorder: p.recorder, Clock: p.clock},
		Metrics: p.metrics,
	}
	for _, change := range changes {
		change(&options)
	}
	var err error
	p.controller, err = machinehealthcheck.New(options)
	Expect(err).NotTo(HaveOccurred())
	return p
}

// noting notes what is written through it.
func (p *passes) noting(through client.WithWatch) client.WithWatch {
	note := func(verb string, object client.Object) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.writes = append(p.writes, fmt.Sprintf("%s %s", verb, object.GetName()))
	}
	return interceptor.NewClient(through, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			note("create", object)
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			note("delete", object)
			return c.Delete(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			note("patch", object)
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			note("patch "+sub+" of", object)
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}

// outcome is what a pass came to.
type outcome struct {
	after  time.Duration
	events []string // type and reason
	notes  []string
	writes []string
	err    error
}

// next runs one reconcile.
func (p *passes) next(ctx context.Context) outcome {
	GinkgoHelper()
	p.writes = nil
	result, err := p.controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p.check)})
	out := outcome{after: result.RequeueAfter, err: err, writes: p.writes, events: []string{}}
	for {
		select {
		case event := <-p.recorder.Events:
			words := strings.SplitN(event, " ", 3)
			out.events = append(out.events, words[0]+" "+words[1])
			out.notes = append(out.notes, words[2])
		default:
			return out
		}
	}
}

// The kinds of an external remediation, as somebody else would bring them.
const (
	rebootGroup   = "reboot.example.com"
	rebootVersion = rebootGroup + "/v1"
)

func installRebootKinds(ctx context.Context) {
	GinkgoHelper()
	for _, kind := range []string{"Reboot", "RebootTemplate"} {
		plural := strings.ToLower(kind) + "s"
		Expect(plane.Client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + rebootGroup},
			"spec": map[string]any{
				"group": rebootGroup, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "x-kubernetes-preserve-unknown-fields": true,
					}},
				}},
			},
		}})).To(Succeed())
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(reboot("", "").GroupVersionKind().GroupVersion().WithKind(kind + "List"))
		Eventually(func() error { return plane.Client.List(ctx, list) }).Should(Succeed())
	}
}

func reboot(namespace, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(rebootVersion)
	out.SetKind("Reboot")
	out.SetNamespace(namespace)
	out.SetName(name)
	return out
}

func rebootTemplate(namespace, name string) *unstructured.Unstructured {
	out := reboot(namespace, name)
	out.SetKind("RebootTemplate")
	out.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"method": "power"}}}
	return out
}

func rebooting(name string) func(*machinev1beta1.MachineHealthCheck) {
	return builder.WithRemediationTemplate(rebootVersion, "RebootTemplate", name)
}
