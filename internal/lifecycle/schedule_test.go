package lifecycle

import (
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestAnInstanceWithoutAnAddressIsLookedAtSoonThenSeldom(t *testing.T) {
	age, looks := time.Duration(0), 0
	for ; age < time.Hour; looks++ {
		after := addressesAfter(age)
		if after < firstAddressCheck || after > max(firstAddressCheck, age) {
			t.Errorf("at the age of %s the next look is after %s", age, after)
		}
		age += after
	}
	if looks > 16 {
		t.Errorf("%d looks in the first hour; each is a run", looks)
	}
}

func TestWhenAnInstanceIsCheckedAgain(t *testing.T) {
	name := corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "worker-1"}
	ip := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	regular := inTurn(made, time.Hour, "")
	for title, tc := range map[string]struct {
		addresses  []corev1.NodeAddress
		policy     v1alpha1.DriftPolicy
		age        time.Duration
		wantAfter  time.Duration
		wantWanted bool
	}{
		"one with an IP address, in its turn":            {addresses: []corev1.NodeAddress{name, ip}, wantAfter: regular, wantWanted: true},
		"one with names only, soon":                      {addresses: []corev1.NodeAddress{name}, wantAfter: firstAddressCheck, wantWanted: true},
		"one without for a while, less soon":             {age: 10 * time.Minute, wantAfter: 5 * time.Minute, wantWanted: true},
		"one without for a day, in its turn":             {age: 24 * time.Hour, wantAfter: regular, wantWanted: true},
		"none whose drift is ignored, once it has one":   {addresses: []corev1.NodeAddress{ip}, policy: v1alpha1.DriftIgnore, wantAfter: regular},
		"one whose drift is ignored, for its address":    {policy: v1alpha1.DriftIgnore, wantAfter: firstAddressCheck, wantWanted: true},
		"none whose drift is ignored and that gets none": {policy: v1alpha1.DriftIgnore, age: 24 * time.Hour, wantAfter: regular},
	} {
		t.Run(title, func(t *testing.T) {
			machine := builder.Machine()
			machine.UID = ""
			if tc.policy != "" {
				machine.Annotations = map[string]string{v1alpha1.DriftPolicyAnnotation: string(tc.policy)}
			}
			status := &v1alpha1.TerraformMachineProviderStatus{Conditions: []metav1.Condition{{
				Type: string(machinev1beta1.MachineCreation), Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(made),
			}}}
			after, wanted := NewSchedule(machine, status, tc.addresses, time.Hour).checkAfter(made.Add(tc.age))
			if after != tc.wantAfter || wanted != tc.wantWanted {
				t.Errorf("after %s, %t; want %s, %t", after, wanted, tc.wantAfter, tc.wantWanted)
			}
		})
	}
}

func TestRegularChecksFallDueInTurns(t *testing.T) {
	const interval = 30 * time.Minute
	due := map[time.Time]int{}
	for i := range 600 {
		last := time.Unix(1700000000, 0).Add(time.Duration(i) * 7 * time.Millisecond)
		uid := fmt.Sprint(i)
		at := last.Add(inTurn(last, interval, uid))
		if after := at.Sub(last.Truncate(time.Second)); after < 27*time.Minute || after > 33*time.Minute {
			t.Errorf("the check is due after %s, want half an hour, a tenth more or less", after)
		}
		stored := last.Truncate(time.Second)
		if next := stored.Add(inTurn(stored, interval, uid)); !next.Equal(at) {
			t.Errorf("by the status it is due at %s, by the record at %s", next, at)
		}
		due[at]++
	}
	if len(due) < 10 || len(due) > 14 {
		t.Errorf("the checks of a fifth of the interval are in %d turns, want twelve or so", len(due))
	}
	if got := inTurn(time.Unix(0, 0), time.Nanosecond, ""); got != 1 {
		t.Errorf("an interval that has no turns: %s", got)
	}
}

func TestARequestedCheckIsDueOnce(t *testing.T) {
	made := time.Unix(1700000000, 0)
	for name, tc := range map[string]struct {
		policy          v1alpha1.DriftPolicy
		request, served string
		want            bool
	}{
		"none":                          {v1alpha1.DriftReport, "", "", false},
		"a request":                     {v1alpha1.DriftReport, "one", "", true},
		"one that was served":           {v1alpha1.DriftReport, "one", "one", false},
		"another after it":              {v1alpha1.DriftReport, "two", "one", true},
		"one that was taken back":       {v1alpha1.DriftReport, "", "one", false},
		"a request where it is ignored": {v1alpha1.DriftIgnore, "one", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Facts{CheckRequest: tc.request, Record: record.Record{Check: &record.DriftCheck{At: made, Request: tc.served}}}
			s := Schedule{interval: time.Hour, uid: "uid", policy: tc.policy, hasIP: true}
			if got := s.Due(f, made.Add(time.Minute)).Check; got != tc.want {
				t.Errorf("a check is due: %t, want %t", got, tc.want)
			}
		})
	}
}
