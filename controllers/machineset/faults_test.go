package machineset_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
)

var errConnection = errors.New("connection reset by peer")

// faultyClient fails some creations and deletions with an error that leaves open whether they were
// carried out.
type faultyClient struct {
	client.Client
	calls atomic.Int32
}

// Every third request is carried out and its response lost; of the others, every fourth never
// arrives.
func (c *faultyClient) do(request func() error) error {
	switch call := c.calls.Add(1); {
	case call%3 == 0:
		return errors.Join(request(), errConnection)
	case call%4 == 0:
		return errConnection
	default:
		return request()
	}
}

func (c *faultyClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.do(func() error { return c.Client.Create(ctx, object, options...) })
}

func (c *faultyClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return c.do(func() error { return c.Client.Delete(ctx, object, options...) })
}

// blindClient sees no Machines, as a cache that has fallen behind.
type blindClient struct{ client.Client }

func (c blindClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if machines, ok := list.(*machinev1beta1.MachineList); ok {
		machines.Items = nil
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

// countingReader counts the lists that it serves.
type countingReader struct {
	client.Reader
	lists *atomic.Int32
}

func (r countingReader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	r.lists.Add(1)
	return r.Reader.List(ctx, list, options...)
}

// blindController is a controller without a manager whose cache shows no Machines. It comes with a
// count of its looks at the API server.
func blindController(clock clock.PassiveClock, timeout time.Duration) (*machineset.Controller, *atomic.Int32) {
	GinkgoHelper()
	lists := &atomic.Int32{}
	c, err := machineset.New(machineset.Options{
		Common: pipeline.Common{
			Client: blindClient{plane.Client}, Reader: countingReader{plane.Client, lists}, Recorder: events.NewFakeRecorder(100), Clock: clock,
		},
		InFlightTimeout: timeout,
	})
	Expect(err).NotTo(HaveOccurred())
	return c, lists
}

func requestFor(set *machinev1beta1.MachineSet) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}
}
