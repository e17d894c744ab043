package machinehealthcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func TestHealth(t *testing.T) {
	ready := func(status corev1.ConditionStatus, lasting time.Duration) *corev1.Node {
		return builder.Node(builder.WithReady(status, ago(lasting)))
	}
	withNode := builder.WithNodeRef(builder.Node())
	disk := machinev1beta1.UnhealthyCondition{
		Type: "DiskPressure", Status: corev1.ConditionTrue, Timeout: metav1.Duration{Duration: time.Minute},
	}
	tcs := map[string]struct {
		spec    []func(*machinev1beta1.MachineHealthCheck)
		machine []func(*machinev1beta1.Machine)
		node    *corev1.Node
		want    healthResult
	}{
		"Failed is final, whatever the Node says": {
			machine: []func(*machinev1beta1.Machine){builder.WithPhase("Failed"), withNode, builder.LastUpdatedAt(ago(time.Hour))},
			node:    ready(corev1.ConditionTrue, time.Hour),
			want:    healthResult{remediate: true, since: ago(time.Hour)},
		},
		"Failed does not wait for the startup timeout": {
			machine: []func(*machinev1beta1.Machine){builder.WithPhase("Failed"), builder.LastUpdatedAt(now)},
			want:    healthResult{remediate: true, since: now},
		},
		"Failed does not mind that the startup timeout is off": {
			spec:    []func(*machinev1beta1.MachineHealthCheck){builder.WithStartupTimeout(0)},
			machine: []func(*machinev1beta1.Machine){builder.WithPhase("Failed"), builder.Stored(ago(time.Hour))},
			want:    healthResult{remediate: true, since: ago(time.Hour)},
		},
		"without a Node and with the startup timeout off there is no trouble": {
			spec:    []func(*machinev1beta1.MachineHealthCheck){builder.WithStartupTimeout(0)},
			machine: []func(*machinev1beta1.Machine){builder.LastUpdatedAt(ago(24 * time.Hour))},
			want:    healthResult{},
		},
		"without a Node and never updated, the whole timeout is ahead": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour))},
			want:    healthResult{starting: true, recheck: 10 * time.Minute},
		},
		"without an instance the clock is the creation, however often the status is written": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(11 * time.Minute)), builder.LastUpdatedAt(ago(10 * time.Second)), instanceSaid("False", 10*time.Second)},
			want:    healthResult{remediate: true, since: ago(11 * time.Minute)},
		},
		"with an instance the clock is when that was there": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour)), builder.LastUpdatedAt(ago(time.Second)), instanceSaid("True", 4*time.Minute)},
			want:    healthResult{starting: true, recheck: 6*time.Minute + time.Second},
		},
		"an instance without a Node past the timeout is remediated, however often the status is written": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour)), builder.LastUpdatedAt(ago(time.Second)), instanceSaid("True", 11*time.Minute)},
			want:    healthResult{remediate: true, since: ago(11 * time.Minute)},
		},
		"where it is unknown whether there is an instance, since that was last reported": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour)), builder.LastUpdatedAt(ago(time.Second)), instanceSaid("Unknown", 4*time.Minute)},
			want:    healthResult{starting: true, recheck: 6*time.Minute + time.Second},
		},
		"what was another API's begins with its return": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(24 * time.Hour)), builder.LastUpdatedAt(ago(time.Second)), said("Paused", "False", 4*time.Minute)},
			want:    healthResult{starting: true, recheck: 6*time.Minute + time.Second},
		},
		"a write from before the creation is another clock's": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(now.Add(time.Hour)), builder.LastUpdatedAt(ago(4 * time.Minute))},
			want:    healthResult{starting: true, recheck: 6*time.Minute + time.Second},
		},
		"without a Node, at the very end of the timeout, a second is left": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(10 * time.Minute)), builder.LastUpdatedAt(now)},
			want:    healthResult{starting: true, recheck: time.Second},
		},
		"without a Node past the timeout it is remediated": {
			machine: []func(*machinev1beta1.Machine){builder.Stored(ago(10*time.Minute + time.Second)), builder.LastUpdatedAt(now)},
			want:    healthResult{remediate: true, since: ago(10*time.Minute + time.Second)},
		},
		"the timeout is ten minutes where none is set": {
			spec:    []func(*machinev1beta1.MachineHealthCheck){func(c *machinev1beta1.MachineHealthCheck) { c.Spec.NodeStartupTimeout = nil }},
			machine: []func(*machinev1beta1.Machine){builder.Stored(now), builder.LastUpdatedAt(now)},
			want:    healthResult{starting: true, recheck: 10*time.Minute + time.Second},
		},
		"a Node that is gone is reason enough": {
			machine: []func(*machinev1beta1.Machine){withNode, builder.LastUpdatedAt(ago(time.Minute))},
			want:    healthResult{remediate: true, since: ago(time.Minute)},
		},
		"a Ready Node is well": {
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionTrue, time.Hour),
			want:    healthResult{},
		},
		"NotReady for longer than allowed": {
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionFalse, 5*time.Minute+time.Second),
			want:    healthResult{remediate: true, since: ago(5*time.Minute + time.Second)},
		},
		"NotReady for as long as allowed has a second left": {
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionFalse, 5*time.Minute),
			want:    healthResult{recheck: time.Second},
		},
		"Unknown for less than allowed waits for the rest": {
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionUnknown, time.Minute),
			want:    healthResult{recheck: 4*time.Minute + time.Second},
		},
		"a condition that the Node lacks never counts": {
			spec: []func(*machinev1beta1.MachineHealthCheck){func(c *machinev1beta1.MachineHealthCheck) {
				c.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{disk}
			}},
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionTrue, time.Hour),
			want:    healthResult{},
		},
		"one condition past its time is enough, though another still waits": {
			spec: []func(*machinev1beta1.MachineHealthCheck){func(c *machinev1beta1.MachineHealthCheck) {
				c.Spec.UnhealthyConditions = append(c.Spec.UnhealthyConditions, disk)
			}},
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    builder.Node(builder.WithReady(corev1.ConditionFalse, ago(time.Minute)), withDiskPressure(ago(2*time.Minute))),
			want:    healthResult{remediate: true, since: ago(2 * time.Minute)},
		},
		"of two past their time the older one dates the trouble": {
			spec: []func(*machinev1beta1.MachineHealthCheck){func(c *machinev1beta1.MachineHealthCheck) {
				c.Spec.UnhealthyConditions = append(c.Spec.UnhealthyConditions, disk)
			}},
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    builder.Node(builder.WithReady(corev1.ConditionFalse, ago(time.Hour)), withDiskPressure(ago(2*time.Hour))),
			want:    healthResult{remediate: true, since: ago(2 * time.Hour)},
		},
		"of two that wait the nearer one says when to requeue": {
			spec: []func(*machinev1beta1.MachineHealthCheck){func(c *machinev1beta1.MachineHealthCheck) {
				c.Spec.UnhealthyConditions = append(c.Spec.UnhealthyConditions, disk)
			}},
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    builder.Node(builder.WithReady(corev1.ConditionFalse, now), withDiskPressure(ago(20*time.Second))),
			want:    healthResult{recheck: 41 * time.Second},
		},
		"no patience at all": {
			spec:    []func(*machinev1beta1.MachineHealthCheck){builder.WithConditionTimeouts(0)},
			machine: []func(*machinev1beta1.Machine){withNode},
			node:    ready(corev1.ConditionFalse, time.Second),
			want:    healthResult{remediate: true, since: ago(time.Second)},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := healthOf(&builder.MachineHealthCheck(tc.spec...).Spec, builder.Machine(tc.machine...), tc.node, now)
			diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(healthResult{}), cmpopts.IgnoreFields(healthResult{}, "why"))
			if diff != "" {
				t.Error(diff)
			}
			if wantWhy := tc.want.remediate || tc.want.recheck > 0; wantWhy != (got.why != "") {
				t.Errorf("got the reason %q, want one: %t", got.why, wantWhy)
			}
		})
	}
}

// instanceSaid has the Machine say since when there is an instance, or none.
func instanceSaid(status corev1.ConditionStatus, lasting time.Duration) func(*machinev1beta1.Machine) {
	return said(machinev1beta1.InstanceExistsCondition, status, lasting)
}

func said(kind machinev1beta1.ConditionType, status corev1.ConditionStatus, lasting time.Duration) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, machinev1beta1.Condition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(ago(lasting))})
	}
}

// TestAMachineThatCannotBeMadeIsReplaced writes its status once a minute, as retries do.
func TestAMachineThatCannotBeMadeIsReplaced(t *testing.T) {
	check := builder.MachineHealthCheck()
	for minute := range 20 {
		at := now.Add(time.Duration(minute) * time.Minute)
		machine := builder.Machine(builder.Stored(now), builder.LastUpdatedAt(at), instanceSaid("False", now.Sub(at)))
		if got, want := healthOf(&check.Spec, machine, nil, at).remediate, minute > 10; got != want {
			t.Fatalf("after %d minutes it is remediated: %t, want %t", minute, got, want)
		}
	}
}

func withDiskPressure(since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: "DiskPressure", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since),
		})
	}
}

func TestHealthyAndInFlight(t *testing.T) {
	node := builder.Node()
	tcs := map[string]struct {
		change                    func(*target)
		wantHealthy, wantInFlight bool
	}{
		"nothing wrong":                        {func(*target) {}, true, false},
		"due for remediation":                  {func(t *target) { t.health.remediate = true }, false, false},
		"due later":                            {func(t *target) { t.health.recheck = time.Second }, false, false},
		"no Node, as it is starting or gone":   {func(t *target) { t.node = nil }, false, false},
		"being deleted, for whatever reason":   {func(t *target) { t.deleting = true }, false, true},
		"left to external remediation":         {func(t *target) { t.annotated = true }, false, true},
		"a request that is no longer needed":   {func(t *target) { t.requested = true }, true, false},
		"a request while it has a trouble":     {func(t *target) { t.requested, t.health.remediate = true, true }, false, true},
		"a request while it gets well, slowly": {func(t *target) { t.requested, t.health.recheck = true, 1 }, false, true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			subject := &target{machine: builder.Machine(), node: node}
			tc.change(subject)
			if got := subject.healthy(); got != tc.wantHealthy {
				t.Errorf("got healthy %t, want %t", got, tc.wantHealthy)
			}
			if got := subject.inFlight(); got != tc.wantInFlight {
				t.Errorf("got in flight %t, want %t", got, tc.wantInFlight)
			}
		})
	}
}
