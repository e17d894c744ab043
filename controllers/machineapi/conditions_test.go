package machineapi

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

func TestWithCondition(t *testing.T) {
	old := machinev1beta1.Condition{
		Type: "M", Status: corev1.ConditionFalse, Severity: machinev1beta1.ConditionSeverityWarning, Reason: "R", Message: "m",
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}
	other := func(kind machinev1beta1.ConditionType) machinev1beta1.Condition {
		condition := old
		condition.Type = kind
		return condition
	}
	changed := func(change func(*machinev1beta1.Condition)) machinev1beta1.Condition {
		condition := old
		change(&condition)
		return condition
	}
	moved := func(condition machinev1beta1.Condition) machinev1beta1.Condition {
		condition.LastTransitionTime = metav1.NewTime(now)
		return condition
	}
	newStatus := changed(func(c *machinev1beta1.Condition) { c.Status = corev1.ConditionTrue })
	newSeverity := changed(func(c *machinev1beta1.Condition) { c.Severity = machinev1beta1.ConditionSeverityInfo })
	newReason := changed(func(c *machinev1beta1.Condition) { c.Reason = "S" })
	newMessage := changed(func(c *machinev1beta1.Condition) { c.Message = "n" })
	type list = []machinev1beta1.Condition
	tcs := map[string]struct {
		have   list
		wanted machinev1beta1.Condition
		want   list
	}{
		"the first one":                          {nil, old, list{moved(old)}},
		"nothing new keeps its time":             {list{old}, moved(old), list{old}},
		"a new status moves the time":            {list{old}, newStatus, list{moved(newStatus)}},
		"a new severity moves the time":          {list{old}, newSeverity, list{moved(newSeverity)}},
		"a new reason moves the time":            {list{old}, newReason, list{moved(newReason)}},
		"a new message moves the time":           {list{old}, newMessage, list{moved(newMessage)}},
		"others stay, and all are in order":      {list{other("Z"), other("A")}, old, list{other("A"), moved(old), other("Z")}},
		"one that was there twice is there once": {list{old, old}, newStatus, list{moved(newStatus)}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(tc.have)
			got := WithCondition(given, tc.wanted, now.Add(300*time.Millisecond).In(time.FixedZone("far", 3600)))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.have, given); diff != "" {
				t.Errorf("the slice given has changed: %s", diff)
			}
		})
	}
}

func TestFindCondition(t *testing.T) {
	have := []machinev1beta1.Condition{{Type: "A", Reason: "a"}, {Type: "B", Reason: "b"}}
	tcs := map[string]struct {
		have []machinev1beta1.Condition
		want *machinev1beta1.Condition
	}{
		"one among others": {have, &have[1]},
		"none of its type": {have[:1], nil},
		"none at all":      {nil, nil},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if got := FindCondition(tc.have, "B"); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
