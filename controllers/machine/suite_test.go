package machine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestMachineAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Machine controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.Default) })

// startManager runs the controller on one namespace until the test ends.
func startManager(namespace string, actuator actuators.Actuator, changes ...func(*machine.Options, manager.Manager)) {
	GinkgoHelper()
	mgr := suite.NewManager(plane, namespace)
	options := machine.Options{Actuator: actuator}
	for _, change := range changes {
		change(&options, mgr)
	}
	Expect(machine.SetupWithManager(mgr, options)).To(Succeed())
	suite.Run(mgr)
}

// passes drives a controller without a manager: one reconcile at a time, and every write to the API
// server noted.
type passes struct {
	client     *notingClient
	controller *machine.Controller
	key        client.ObjectKey
}

func byHand(subject *machinev1beta1.Machine, actuator actuators.Actuator, reader client.Client) *passes {
	GinkgoHelper()
	noting := &notingClient{Client: reader}
	controller, err := machine.New(machine.Options{
		Common: pipeline.Common{Client: noting, Recorder: events.NewFakeRecorder(100)}, Actuator: actuator,
	})
	Expect(err).NotTo(HaveOccurred())
	return &passes{client: noting, controller: controller, key: client.ObjectKeyFromObject(subject)}
}

// next runs one reconcile and returns what it wrote.
func (p *passes) next(ctx context.Context) ([]string, reconcile.Result) {
	GinkgoHelper()
	wrote, result, err := p.try(ctx)
	Expect(err).NotTo(HaveOccurred())
	return wrote, result
}

// try is next for a reconcile that may fail.
func (p *passes) try(ctx context.Context) ([]string, reconcile.Result, error) {
	p.client.taken()
	result, err := p.controller.Reconcile(ctx, reconcile.Request{NamespacedName: p.key})
	return p.client.taken(), result, err
}

// notingClient notes what is written through it.
type notingClient struct {
	client.Client
	// beforeStatus is called before each patch of a status; nil for nothing.
	beforeStatus func()
	// failStatus is what patches of a status fail with; nil for none.
	failStatus error

	mu     sync.Mutex
	writes []string
}

func (c *notingClient) note(verb string, object client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, fmt.Sprintf("%s %T", verb, object))
}

// taken returns the writes so far and forgets them.
func (c *notingClient) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes := c.writes
	c.writes = nil
	return writes
}

func (c *notingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.note("create", object)
	return c.Client.Create(ctx, object, options...)
}

func (c *notingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	c.note("update", object)
	return c.Client.Update(ctx, object, options...)
}

func (c *notingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.note("patch", object)
	return c.Client.Patch(ctx, object, patch, options...)
}

func (c *notingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	c.note("delete", object)
	return c.Client.Delete(ctx, object, options...)
}

func (c *notingClient) Status() client.SubResourceWriter {
	return &notingStatus{SubResourceWriter: c.Client.Status(), client: c}
}

type notingStatus struct {
	client.SubResourceWriter
	client *notingClient
}

func (s *notingStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	s.client.note("update status of", object)
	return s.SubResourceWriter.Update(ctx, object, options...)
}

func (s *notingStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	s.client.note("patch status of", object)
	if s.client.beforeStatus != nil {
		s.client.beforeStatus()
	}
	if s.client.failStatus != nil {
		return s.client.failStatus
	}
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// staleClient returns the Machine as it was when it was frozen, as a cache that has fallen behind.
type staleClient struct {
	client.Client
	frozen *machinev1beta1.Machine
}

func (c *staleClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if into, ok := object.(*machinev1beta1.Machine); ok && c.frozen != nil {
		c.frozen.DeepCopyInto(into)
		return nil
	}
	return c.Client.Get(ctx, key, object, options...)
}
