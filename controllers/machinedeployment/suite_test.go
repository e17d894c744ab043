package machinedeployment_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machine"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/machinedeployment"
	"github.com/machine-iac/machine-iac-operator/controllers/machineset"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var plane *controlplane.ControlPlane

func TestMachineDeploymentAgainstAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MachineDeployment controller")
}

var _ = BeforeSuite(func() { plane = suite.Start(controlplane.CustomNoUpgrade) })

// cloud is an actuator whose instances keep their size, and take another tag in place.
type cloud struct {
	fake.Actuator

	mu       sync.Mutex
	sizes    map[types.UID]string
	refusals int
}

type spec struct {
	Kind  string `json:"kind"`
	Size  string `json:"size,omitempty"`
	Tag   string `json:"tag,omitempty"`
	Never bool   `json:"never,omitempty"`
	Zone  string `json:"zone,omitempty"`
}

func specOf(m *machinev1beta1.Machine) (s spec) {
	GinkgoHelper()
	Expect(json.Unmarshal(m.Spec.ProviderSpec.Value.Raw, &s)).To(Succeed())
	return s
}

func (c *cloud) Create(ctx context.Context, m *machinev1beta1.Machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sizes == nil {
		c.sizes = map[types.UID]string{}
	}
	c.sizes[m.UID] = specOf(m).Size
	return c.Actuator.Create(ctx, m)
}

func (c *cloud) Update(ctx context.Context, m *machinev1beta1.Machine) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch wanted := specOf(m); {
	case wanted.Size != c.sizes[m.UID]:
		c.refusals++
		return actuators.UnsupportedChange("size can only be changed by a new instance")
	case wanted.Tag == "bad":
		return actuators.UpdateFailed("the cloud does not like the tag")
	}
	return c.Actuator.Update(ctx, m)
}

// errCrashed is what every write fails with once a manager has crashed.
var errCrashed = errors.New("crashed")

// crashing is a client that crashes after a number of writes; never if it is negative.
type crashing struct {
	client.Client
	left int
	// refusal is the API server's answer to every write of a Machine; nil for none.
	refusal error
	// invalid is a providerSpec that admission does not accept any more.
	invalid spec
}

func (c *crashing) write(do func() error) error {
	if c.left == 0 {
		return errCrashed
	}
	c.left--
	return do()
}

func (c *crashing) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.write(func() error { return c.Client.Create(ctx, object, options...) })
}

func (c *crashing) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return c.write(func() error { return c.Client.Delete(ctx, object, options...) })
}

func (c *crashing) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, ok := object.(*machinev1beta1.Machine); ok && c.refusal != nil {
		return c.refusal
	}
	if m, ok := object.(*machinev1beta1.Machine); ok && specOf(m) == c.invalid {
		live := &machinev1beta1.Machine{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil || specOf(live) != c.invalid {
			return errors.New(`admission webhook "validation.machine.machine.openshift.io" denied the request: no such size`)
		}
	}
	return c.write(func() error { return c.Client.Patch(ctx, object, patch, options...) })
}

// completing is a client whose API server sets the zone of every Machine that is written, as admission may.
type completing struct {
	client.Client
	zone string
}

func (c completing) complete(object client.Object) {
	if m, ok := object.(*machinev1beta1.Machine); ok && c.zone != "" {
		content := specOf(m)
		content.Zone = c.zone
		raw, err := json.Marshal(content)
		Expect(err).NotTo(HaveOccurred())
		m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	}
}

func (c completing) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	c.complete(object)
	return c.Client.Create(ctx, object, options...)
}

func (c completing) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.complete(object)
	return c.Client.Patch(ctx, object, patch, options...)
}

// lab drives the controllers of a namespace by hand. Each reconcile has new controllers, as after a
// restart of the manager, and may crash after any write of the MachineDeployment's controller.
type lab struct {
	namespace  string
	deployment *v1beta1.MachineDeployment
	cloud      *cloud
	// writes is after how many writes each reconcile of the MachineDeployment crashes; 0 for never.
	writes int
	// refusal is the API server's answer to writes of Machines by the MachineDeployment's controller.
	refusal error
	// invalid is a providerSpec that admission does not accept any more.
	invalid spec
	// zone is what admission sets in every Machine that a controller creates or changes; empty for nothing.
	zone string
	// most and least are the bounds that hold after each step; 0 for none.
	most, least int
	// frozen Machines do not come up or leave.
	hold func(m *machinev1beta1.Machine) bool
}

type change = func(*v1beta1.MachineDeployment)

// newLab creates a MachineDeployment, and runs it until its Machines are available.
func newLab(ctx context.Context, changes ...change) *lab {
	GinkgoHelper()
	l := labIn(suite.Namespace(ctx, plane), changes...)
	Expect(plane.Client.Create(ctx, l.deployment)).To(Succeed())
	l.settle(ctx)
	return l
}

func labIn(namespace string, changes ...change) *lab {
	labels := map[string]string{"pool": "workers", builder.ClusterLabel: builder.ClusterID}
	md := &v1beta1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"},
		Spec: v1beta1.MachineDeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}},
			Template: machinev1beta1.MachineTemplateSpec{
				ObjectMeta: machinev1beta1.ObjectMeta{Labels: labels},
			},
		},
	}
	template(spec{Size: "small", Tag: "a"})(md)
	for _, change := range changes {
		change(md)
	}
	return &lab{namespace: namespace, deployment: md, cloud: &cloud{}}
}

func template(s spec) change {
	s.Kind = "TestSpec"
	return func(md *v1beta1.MachineDeployment) {
		raw, err := json.Marshal(s)
		Expect(err).NotTo(HaveOccurred())
		md.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(nil)
		md.Spec.Template.Spec.ProviderSpec.Value.Raw = raw
	}
}

func strategy(kind v1beta1.MachineDeploymentStrategyType, surge, unavailable int) change {
	return func(md *v1beta1.MachineDeployment) {
		md.Spec.Strategy = v1beta1.MachineDeploymentStrategy{Type: kind, RollingUpdate: &v1beta1.RollingUpdateBounds{
			MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
		}}
	}
}

func replicas(n int32) change {
	return func(md *v1beta1.MachineDeployment) { md.Spec.Replicas = &n }
}

// change edits the MachineDeployment.
func (l *lab) change(ctx context.Context, changes ...change) {
	GinkgoHelper()
	Eventually(func() error {
		if err := plane.Client.Get(ctx, client.ObjectKeyFromObject(l.deployment), l.deployment); err != nil {
			return err
		}
		for _, change := range changes {
			change(l.deployment)
		}
		return plane.Client.Update(ctx, l.deployment)
	}).Should(Succeed())
}

func common(c client.Client) pipeline.Common {
	return pipeline.Common{Client: c, Reader: plane.Client, Recorder: events.NewFakeRecorder(1000)}
}

func tolerated(err error) {
	GinkgoHelper()
	if err != nil && !errors.Is(err, errCrashed) && !apierrors.IsConflict(err) && !strings.Contains(err.Error(), "crashed") {
		Expect(err).NotTo(HaveOccurred())
	}
}

// roll runs one reconcile of the MachineDeployment.
func (l *lab) roll(ctx context.Context) {
	GinkgoHelper()
	left := l.writes
	if left == 0 {
		left = -1
	}
	controller := machinedeployment.New(machinedeployment.Options{Common: common(&crashing{plane.Client, left, l.refusal, l.invalid})})
	_, err := controller.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(l.deployment)})
	if l.refusal == nil || !errors.Is(err, l.refusal) {
		tolerated(err)
	}
	l.check(ctx)
}

// follow runs the controllers of MachineSets and Machines once, and brings up Nodes.
func (l *lab) follow(ctx context.Context) {
	GinkgoHelper()
	sets, err := machineset.New(machineset.Options{Common: common(completing{plane.Client, l.zone})})
	Expect(err).NotTo(HaveOccurred())
	for _, set := range l.sets(ctx) {
		Expect(machineapi.FindCondition(set.Status.Conditions, v1beta1.ConditionFrozen)).To(BeNil(), "no rollout is a runaway")
		_, err := sets.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&set)})
		tolerated(err)
		l.check(ctx)
	}
	machines, err := machine.New(machine.Options{Common: common(plane.Client), Actuator: l.cloud})
	Expect(err).NotTo(HaveOccurred())
	for _, m := range l.machines(ctx) {
		if l.hold != nil && l.hold(&m) {
			continue
		}
		l.drain(ctx, &m)
		_, err := machines.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
		tolerated(err)
		l.up(ctx, client.ObjectKeyFromObject(&m))
	}
}

// drain does what the drain controller does.
func (l *lab) drain(ctx context.Context, m *machinev1beta1.Machine) {
	GinkgoHelper()
	if m.DeletionTimestamp.IsZero() || machineapi.Drained(m) {
		return
	}
	before := m.DeepCopy()
	m.Status.Conditions = machineapi.WithCondition(m.Status.Conditions, machinev1beta1.Condition{
		Type: machinev1beta1.MachineDrained, Status: corev1.ConditionTrue,
	}, time.Now())
	Expect(client.IgnoreNotFound(plane.Client.Status().Patch(ctx, m, client.MergeFrom(before)))).To(Succeed())
}

// up gives an instance its Node.
func (l *lab) up(ctx context.Context, key client.ObjectKey) {
	GinkgoHelper()
	m := &machinev1beta1.Machine{}
	err := plane.Client.Get(ctx, key, m)
	if apierrors.IsNotFound(err) || err == nil && (m.Spec.ProviderID == nil || m.Status.NodeRef != nil || specOf(m).Never) {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	node := builder.Node(func(n *corev1.Node) { n.Name = m.Name })
	Expect(client.IgnoreAlreadyExists(plane.Create(ctx, node))).To(Succeed())
	before := m.DeepCopy()
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: node.Name}
	Expect(plane.Client.Status().Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
}

func (l *lab) sets(ctx context.Context) []machinev1beta1.MachineSet {
	GinkgoHelper()
	list := &machinev1beta1.MachineSetList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(l.namespace))).To(Succeed())
	return list.Items
}

// set returns the MachineSet whose template has a tag and a size.
func (l *lab) set(ctx context.Context, s spec) *machinev1beta1.MachineSet {
	GinkgoHelper()
	s.Kind = "TestSpec"
	for _, set := range l.sets(ctx) {
		if specOf(&machinev1beta1.Machine{Spec: set.Spec.Template.Spec}) == s {
			return &set
		}
	}
	return nil
}

func (l *lab) machines(ctx context.Context) []machinev1beta1.Machine {
	GinkgoHelper()
	list := &machinev1beta1.MachineList{}
	Expect(plane.Client.List(ctx, list, client.InNamespace(l.namespace))).To(Succeed())
	return list.Items
}

// check checks the bounds.
func (l *lab) check(ctx context.Context) {
	GinkgoHelper()
	if l.most+l.least == 0 {
		return
	}
	available, all := 0, 0
	for _, m := range l.machines(ctx) {
		all++
		if m.DeletionTimestamp.IsZero() && m.Status.NodeRef != nil {
			available++
		}
	}
	Expect(all).To(BeNumerically("<=", l.most), "Machines in all")
	Expect(available).To(BeNumerically(">=", l.least), "available Machines")
}

// rounds runs everything a number of times.
func (l *lab) rounds(ctx context.Context, count int) {
	GinkgoHelper()
	for range count {
		l.roll(ctx)
		l.follow(ctx)
	}
}

// settle runs everything until the rollout is complete.
func (l *lab) settle(ctx context.Context) {
	GinkgoHelper()
	var last string
	for range 120 {
		l.rounds(ctx, 1)
		md := l.read(ctx)
		progressing := meta.FindStatusCondition(md.Status.Conditions, v1beta1.ConditionProgressing)
		if progressing != nil && progressing.Reason == v1beta1.ReasonNewMachineSetAvailable && l.quiet(ctx, md) {
			return
		}
		last = fmt.Sprintf("%+v", md.Status)
	}
	Fail("the rollout does not end: " + last)
}

// quiet reports whether nothing is left to do.
func (l *lab) quiet(ctx context.Context, md *v1beta1.MachineDeployment) bool {
	if md.Status.ObservedGeneration != md.Generation || len(l.machines(ctx)) != int(*md.Spec.Replicas) {
		return false
	}
	wanted := spec{}
	Expect(json.Unmarshal(md.Spec.Template.Spec.ProviderSpec.Value.Raw, &wanted)).To(Succeed())
	return !slices.ContainsFunc(l.machines(ctx), func(m machinev1beta1.Machine) bool {
		return specOf(&m) != wanted || m.Annotations[v1beta1.MovedFromAnnotation] != ""
	}) && !slices.ContainsFunc(l.sets(ctx), func(set machinev1beta1.MachineSet) bool {
		return set.Annotations[v1beta1.HoldAnnotation] != ""
	})
}

func (l *lab) read(ctx context.Context) *v1beta1.MachineDeployment {
	GinkgoHelper()
	md := &v1beta1.MachineDeployment{}
	Expect(plane.Client.Get(ctx, client.ObjectKeyFromObject(l.deployment), md)).To(Succeed())
	return md
}

func (l *lab) condition(ctx context.Context, kind string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(l.read(ctx).Status.Conditions, kind)
}

func (l *lab) uids(ctx context.Context) []types.UID {
	GinkgoHelper()
	var out []types.UID
	for _, m := range l.machines(ctx) {
		out = append(out, m.UID)
	}
	slices.Sort(out)
	return out
}

func past(d time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-d)) }
