package capacity

import (
	"context"
	"errors"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// stubClient has one MachineSet, and fails reads and writes with errors of the test's choice.
type stubClient struct {
	client.Client
	set              *machinev1beta1.MachineSet
	getErr, patchErr error
	patches          int
}

func (c *stubClient) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.getErr == nil {
		c.set.DeepCopyInto(object.(*machinev1beta1.MachineSet))
	}
	return c.getErr
}

func (c *stubClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	c.patches++
	return c.patchErr
}

func TestReconcileWritesOnlyWhatDiffers(t *testing.T) {
	size := actuators.Capacity{CPU: 2, MemoryMiB: 4096, Architecture: "amd64"}
	resource := machinev1beta1.Resource("machinesets")
	gone := apierrors.NewNotFound(resource, "s")
	lost := errors.New("connection reset by peer")
	tcs := map[string]struct {
		change           func(*machinev1beta1.MachineSet)
		getErr, patchErr error
		sizeErr          error
		wantPatches      int
		wantAgain        time.Duration
		wantErr          error
	}{
		"a size that is being read is asked for again": {sizeErr: actuators.InProgress(time.Second, "reading"), wantAgain: time.Second},
		"a size that could not be read, too":           {sizeErr: &actuators.UnknownInstanceTypeError{RetryAfter: time.Hour}, wantAgain: time.Hour},
		"a size that is unknown for good is not":       {sizeErr: actuators.UnknownInstanceType("small", "fake", "unknown")},
		"a MachineSet without annotations is written":  {wantPatches: 1},
		"one that has them costs no request":           {change: func(s *machinev1beta1.MachineSet) { s.Annotations = annotate(nil, size, &s.Spec.Template.Spec) }},
		"one that goes is left alone":                  {change: func(s *machinev1beta1.MachineSet) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }},
		"one of another API is left alone": {change: func(s *machinev1beta1.MachineSet) {
			s.Status.AuthoritativeAPI = machinev1beta1.MachineAuthorityClusterAPI
		}},
		"one that is gone is no error":                           {getErr: gone},
		"one that goes meanwhile is no error":                    {patchErr: gone, wantPatches: 1},
		"one that somebody has written meanwhile is tried again": {patchErr: apierrors.NewConflict(resource, "s", lost), wantPatches: 1, wantAgain: pipeline.ConflictRetry},
		"a read that is lost is tried again with backoff":        {getErr: lost, wantErr: lost},
		"a write that is lost is tried again with backoff":       {patchErr: lost, wantPatches: 1, wantErr: lost},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			set := builder.MachineSet(func(s *machinev1beta1.MachineSet) {
				s.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(map[string]any{"instanceType": "small"})
			})
			if tc.change != nil {
				tc.change(set)
			}
			writer := &stubClient{set: set, getErr: tc.getErr, patchErr: tc.patchErr}
			estimator := &fake.Actuator{Types: map[string]actuators.Capacity{"small": size}}
			if tc.sizeErr != nil {
				estimator.Fail(fake.Capacity, tc.sizeErr)
			}
			c, err := New(Options{
				Common: pipeline.Common{Client: writer, Recorder: events.NewFakeRecorder(1)}, Estimator: estimator,
			})
			if err != nil {
				t.Fatal(err)
			}
			result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
			if !errors.Is(err, tc.wantErr) || result.RequeueAfter != tc.wantAgain || writer.patches != tc.wantPatches {
				t.Errorf("%d patches, again after %s, error %v; want %d, %s, %v", writer.patches, result.RequeueAfter, err, tc.wantPatches, tc.wantAgain, tc.wantErr)
			}
		})
	}
}
