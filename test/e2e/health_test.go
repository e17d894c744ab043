//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	checkName = "hollow-health"
	// broken is a Node condition that only the tests set.
	broken = corev1.NodeConditionType("Broken")
	// heartbeatGrace is how long a Node may be silent: KWOK sends a heartbeat every ten seconds.
	heartbeatGrace = 25 * time.Second
	unhealthyFor   = 5 * time.Second
	// pausedAnnotation pauses a MachineHealthCheck.
	pausedAnnotation = "cluster.x-k8s.io/paused"
)

// healthCheck returns a check that allows one unhealthy Machine of the MachineSet.
func healthCheck() *machinev1beta1.MachineHealthCheck {
	unhealthy := func(kind corev1.NodeConditionType, status corev1.ConditionStatus) machinev1beta1.UnhealthyCondition {
		return machinev1beta1.UnhealthyCondition{
			Type: kind, Status: status, Timeout: metav1.Duration{Duration: unhealthyFor},
		}
	}
	return &machinev1beta1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: checkName},
		Spec: machinev1beta1.MachineHealthCheckSpec{
			Selector: metav1.LabelSelector{
				MatchLabels: map[string]string{"machine.openshift.io/cluster-api-machineset": setName},
			},
			MaxUnhealthy: ptr.To(intstr.FromInt32(1)),
			UnhealthyConditions: []machinev1beta1.UnhealthyCondition{
				unhealthy(corev1.NodeReady, corev1.ConditionUnknown), unhealthy(broken, corev1.ConditionTrue),
			},
		},
	}
}

func aMachineHealthCheck() {
	var seen *timeline
	var check *machinev1beta1.MachineHealthCheck
	var machines []string // the MachineSet's, at the start of a story
	labels := []string{label("name", checkName), label("namespace", lab.Namespace)}

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, 3)
		w.nodesAreSilentFor(ctx, heartbeatGrace)
		DeferCleanup(func(ctx SpecContext) { w.nodesAreSilentFor(ctx, 0) })
		seen = w.timeline(ctx)
		check = healthCheck()
		w.create(ctx, check)
	})
	BeforeEach(func(ctx SpecContext) { machines = w.names(ctx) })

	It("replaces a Machine whose Node is not heard of any more", func(ctx SpecContext) {
		lost := w.get(ctx, machines[0])
		w.checked(ctx, 3, corev1.ConditionTrue, "")
		w.silence(ctx, lost.Name)
		until(ctx, patience, "Node "+lost.Name+" is not Ready", func(ctx context.Context) error {
			if ready(w.node(ctx, lost.Name)) {
				return errors.New("it is Ready")
			}
			return nil
		})
		seen.happens(ctx, drained(lost.Name), destroyed(lost.Name), nodeGone(lost.Name), machineGone(lost.Name))
		w.expectEvent(ctx, lost, "MachineDeleted", "")
		w.settles(ctx, 3)
		w.checked(ctx, 3, corev1.ConditionTrue, "")
		Expect(w.names(ctx)).To(ContainElements(machines[1:]), "a healthy Machine was replaced")
		Expect(w.shows(ctx, "mapi_machinehealthcheck_nodes_covered", labels...)).To(Equal(3.0))
		Expect(w.shows(ctx, "mapi_machinehealthcheck_remediation_success_total", labels...)).To(Equal(1.0))
		Expect(w.shows(ctx, "mapi_machinehealthcheck_short_circuit", labels...)).To(BeZero())
	})

	It("removes nothing while more Machines are unhealthy than it allows, and says so", func(ctx SpecContext) {
		w.breaks(ctx, machines[0], corev1.ConditionTrue)
		w.breaks(ctx, machines[1], corev1.ConditionTrue)
		w.checked(ctx, 1, corev1.ConditionFalse, machinev1beta1.TooManyUnhealthyReason)
		w.expectEvent(ctx, check, "RemediationRestricted", "")
		Consistently(ctx, w.names).WithArguments(ctx).WithTimeout(unhealthyFor + aWhile).WithPolling(poll).Should(
			Equal(machines))
		Expect(w.shows(ctx, "mapi_machinehealthcheck_short_circuit", labels...)).To(Equal(1.0))
	})

	It("goes on when enough of them have recovered", func(ctx SpecContext) {
		w.breaks(ctx, machines[1], corev1.ConditionFalse)
		seen.happens(ctx, destroyed(machines[0]), machineGone(machines[0]))
		w.settles(ctx, 3)
		w.checked(ctx, 3, corev1.ConditionTrue, "")
		Expect(w.names(ctx)).To(ContainElements(machines[1:]), "a healthy Machine was replaced")
		Expect(w.shows(ctx, "mapi_machinehealthcheck_short_circuit", labels...)).To(BeZero())
	})

	It("does nothing while it is paused", func(ctx SpecContext) {
		w.kubectl(ctx, "annotate", "machinehealthcheck", checkName, pausedAnnotation+"=")
		w.breaks(ctx, machines[2], corev1.ConditionTrue)
		Consistently(ctx, w.names).WithArguments(ctx).WithTimeout(unhealthyFor + aWhile).WithPolling(poll).Should(
			Equal(machines))
		w.kubectl(ctx, "annotate", "machinehealthcheck", checkName, pausedAnnotation+"-")
		seen.happens(ctx, machineGone(machines[2]))
		w.settles(ctx, 3)
	})

	It("takes its series with it when it is deleted", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machinehealthcheck", checkName)
		for _, name := range []string{"nodes_covered", "remediation_success_total", "short_circuit"} {
			Eventually(ctx, w.series).WithArguments(ctx, "mapi_machinehealthcheck_"+name,
				labels[0]).WithTimeout(patience).Should(BeEmpty())
		}
	})
}

// names returns the sorted names of all Machines that are not being deleted.
func (w *world) names(ctx context.Context) []string {
	GinkgoHelper()
	seen, err := w.census(ctx)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, machine := range seen.machines {
		if machine.DeletionTimestamp == nil {
			names = append(names, machine.Name)
		}
	}
	return names
}

// nodesAreSilentFor changes how long a Node may miss heartbeats before it is not Ready; zero restores the cluster's
// default.
func (w *world) nodesAreSilentFor(ctx context.Context, grace time.Duration) {
	GinkgoHelper()
	Expect(w.cluster.Stop(ctx, cluster.ControllerManager)).To(Succeed())
	changed, err := cluster.New(cluster.Options{Dir: w.dir, Bin: filepath.Join(root, "bin"), NodeMonitorGrace: grace})
	Expect(err).NotTo(HaveOccurred())
	Expect(changed.Start(ctx, cluster.ControllerManager)).To(Succeed())
}

// silence ends a Node's heartbeats for good: KWOK gives up a Node whose Lease another holds.
func (w *world) silence(ctx context.Context, node string) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	Eventually(func() error { // KWOK may renew it between the two requests
		err := w.client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, lease)
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To("nobody"), ptr.To[int32](24*60*60)
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		return w.client.Update(ctx, lease)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
}

// breaks sets the condition that makes a Node unhealthy.
func (w *world) breaks(ctx context.Context, name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	node := w.node(ctx, name)
	before := node.DeepCopy()
	now := metav1.Now()
	node.Status.Conditions = append(
		slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == broken }),
		corev1.NodeCondition{
			Type: broken, Status: status, Reason: "Reported", Message: "a test says so",
			LastHeartbeatTime: now, LastTransitionTime: now,
		})
	Expect(w.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
}

// checked waits until the MachineHealthCheck counts this many healthy Machines of three, and reports whether it may
// remediate.
func (w *world) checked(ctx context.Context, healthy int, allowed corev1.ConditionStatus, reason string) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("%d/3 Machines are healthy", healthy), func(ctx context.Context) error {
		check := &machinev1beta1.MachineHealthCheck{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: checkName}, check); err != nil {
			return err
		}
		status := check.Status
		if ptr.Deref(status.ExpectedMachines, 0) != 3 || ptr.Deref(status.CurrentHealthy, 0) != healthy {
			return fmt.Errorf("%d/%d Machines are healthy", ptr.Deref(status.CurrentHealthy, 0),
				ptr.Deref(status.ExpectedMachines, 0))
		}
		if want := int32(max(0, 1-(3-healthy))); status.RemediationsAllowed != want {
			return fmt.Errorf("remediationsAllowed is %d, not %d", status.RemediationsAllowed, want)
		}
		for _, c := range status.Conditions {
			if c.Type == machinev1beta1.RemediationAllowedCondition && c.Status == allowed && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", status.Conditions)
	})
}
