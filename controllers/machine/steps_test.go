package machine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/controllers/pipeline"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// stepResult is what a step returned and left behind.
type stepResult struct {
	Proceed bool
	Error   string
	After   time.Duration
	Phase   string
	// Failure is errorReason and errorMessage, joined by a colon.
	Failure string
	// Exists and UpToDate are status, reason and message of the two conditions, joined by colons.
	Exists, UpToDate string
}

func runStep(t *testing.T, step pipeline.Step[*scope], s *scope) stepResult {
	t.Helper()
	proceed, err := step.Reconcile(t.Context(), s)
	got := stepResult{Proceed: proceed, After: s.Result().RequeueAfter, Phase: machineapi.Phase(s.machine)}
	if err != nil {
		got.Error = err.Error()
	}
	if s.machine.Status.ErrorMessage != nil {
		if s.machine.Status.ErrorReason != nil {
			got.Failure = string(*s.machine.Status.ErrorReason)
		}
		got.Failure += ":" + *s.machine.Status.ErrorMessage
	}
	shown := func(kind machinev1beta1.ConditionType) string {
		if c := machineapi.FindCondition(s.machine.Status.Conditions, kind); c != nil {
			return fmt.Sprintf("%s:%s:%s", c.Status, c.Reason, c.Message)
		}
		return ""
	}
	got.Exists, got.UpToDate = shown(machinev1beta1.InstanceExistsCondition), shown(InstanceUpToDate)
	return got
}

func scopeFor(mods ...modifier) *scope {
	machine := builder.Machine(append([]modifier{builder.Stored(now), builder.WithFinalizer()}, mods...)...)
	return &scope{machine: machine, original: machine.DeepCopy()}
}

func clockAt(at time.Time) *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(at)
}

// settled is an actuator whose instances exist or not, whatever is asked of it, and that leaves the
// Machine as it is.
type settled struct {
	fake.Actuator
	exists  bool
	recheck time.Duration
}

func (a *settled) Exists(context.Context, *machinev1beta1.Machine) (bool, error) {
	return a.exists, nil
}
func (a *settled) Create(context.Context, *machinev1beta1.Machine) error { return nil }
func (a *settled) Update(context.Context, *machinev1beta1.Machine) error { return nil }
func (a *settled) RecheckAfter(*machinev1beta1.Machine) time.Duration    { return a.recheck }

func TestCheckExistsDecidesThePhase(t *testing.T) {
	missing := "False:InstanceMissing:Instance not found on provider"
	tcs := map[string]struct {
		exists bool
		mods   []modifier
		want   stepResult
	}{
		"newly born": {false, nil, stepResult{
			Proceed: true, Phase: "Provisioning", Exists: "False:InstanceNotCreated:Instance has not been created",
		}},
		"still to be made": {false, []modifier{builder.WithPhase("Provisioning")}, stepResult{
			Proceed: true, Phase: "Provisioning", Exists: "False:InstanceNotCreated:Instance has not been created",
		}},
		"there":                         {true, []modifier{builder.WithPhase("Provisioning")}, stepResult{Proceed: true, Phase: "Provisioning", Exists: "True::"}},
		"there before it had a phase":   {true, nil, stepResult{Proceed: true, Exists: "True::"}},
		"gone, as addresses show":       {false, []modifier{builder.WithPhase("Running"), builder.WithInternalIPs("10.0.0.1")}, stepResult{Phase: "Failed", Failure: ":can't find created instance", Exists: missing}},
		"gone, as the providerID shows": {false, []modifier{builder.WithPhase("Provisioned"), builder.WithProviderID("fake://1")}, stepResult{Phase: "Failed", Failure: ":can't find created instance", Exists: missing}},
		"gone before it had a phase":    {false, []modifier{builder.WithProviderID("fake://1")}, stepResult{Phase: "Failed", Failure: ":can't find created instance", Exists: missing}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(tc.mods...)
			got := runStep(t, &checkExists{actuator: &settled{exists: tc.exists}, clock: clockAt(now)}, s)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if s.exists != tc.exists {
				t.Errorf("got %v for later steps, want %v", s.exists, tc.exists)
			}
		})
	}
}

func TestUpdateDecidesThePhase(t *testing.T) {
	provisioning, id := builder.WithPhase("Provisioning"), builder.WithProviderID("fake://1")
	node := builder.WithNodeRef(builder.Node())
	tcs := map[string]struct {
		mods    []modifier
		recheck time.Duration
		want    stepResult
	}{
		"not to be seen yet":                      {[]modifier{provisioning}, 0, stepResult{Phase: "Provisioning", After: 30 * time.Second, UpToDate: "True::"}},
		"no Node yet":                             {[]modifier{provisioning, id}, 0, stepResult{Phase: "Provisioned", After: 30 * time.Second, UpToDate: "True::"}},
		"addresses are enough":                    {[]modifier{provisioning, builder.WithInternalIPs("10.0.0.1")}, 0, stepResult{Phase: "Provisioned", After: 30 * time.Second, UpToDate: "True::"}},
		"with a Node":                             {[]modifier{provisioning, id, node}, 0, stepResult{Phase: "Running", UpToDate: "True::"}},
		"a Node alone says nothing":               {[]modifier{provisioning, node}, 0, stepResult{Phase: "Provisioning", After: 30 * time.Second, UpToDate: "True::"}},
		"looked at again when the actuator wants": {[]modifier{id, node}, time.Hour, stepResult{Phase: "Running", After: time.Hour, UpToDate: "True::"}},
		"but not later than without it":           {[]modifier{id}, time.Hour, stepResult{Phase: "Provisioned", After: 30 * time.Second, UpToDate: "True::"}},
		"a time that is past asks for none":       {[]modifier{id, node}, -time.Hour, stepResult{Phase: "Running", UpToDate: "True::"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(tc.mods...)
			s.exists = true
			step := &updateInstance{actuator: &settled{recheck: tc.recheck}, clock: clockAt(now)}
			if diff := cmp.Diff(tc.want, runStep(t, step, s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStepsPassOnWhatIsNotTheirs(t *testing.T) {
	actuator := &fake.Actuator{}
	tcs := map[string]struct {
		step pipeline.Step[*scope]
		s    *scope
		want stepResult
	}{
		"nothing to update":                {&updateInstance{actuator: actuator}, scopeFor(), stepResult{Proceed: true}},
		"nothing to create":                {&createInstance{actuator: actuator}, &scope{machine: builder.Machine(), exists: true}, stepResult{Proceed: true}},
		"a Machine that has not failed":    {&checkFailed{}, scopeFor(builder.WithPhase("Running")), stepResult{Proceed: true, Phase: "Running"}},
		"errors that belong to no failure": {&checkFailed{}, scopeFor(withError("stray"), builder.WithPhase("Running")), stepResult{Proceed: true, Phase: "Running"}},
		"a Machine with the finalizer":     {&addFinalizer{}, scopeFor(), stepResult{Proceed: true}},
		"no Node to remove":                {&deleteNode{}, scopeFor(), stepResult{Proceed: true}},
		"nobody holds it":                  {&waitForTerminateHooks{}, scopeFor(), stepResult{Proceed: true}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runStep(t, tc.step, tc.s)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if calls := actuator.Calls(); len(calls) != 0 {
		t.Errorf("the actuator was called: %v", calls)
	}
}

func TestFailureIsTheEndUntilTheSpecIsFixed(t *testing.T) {
	tcs := map[string]struct {
		mods []modifier
		want stepResult
	}{
		"failed":        {[]modifier{withError("wrong"), failedAt("1"), withGeneration(1)}, stepResult{Phase: "Failed", Failure: "InvalidConfiguration:wrong"}},
		"lost":          {[]modifier{withError("lost"), withGeneration(2)}, stepResult{Phase: "Failed", Failure: "InvalidConfiguration:lost"}},
		"with new spec": {[]modifier{withError("wrong"), failedAt("1"), withGeneration(2)}, stepResult{Proceed: true, Phase: "Provisioning"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runStep(t, &checkFailed{}, scopeFor(tc.mods...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBeginDelete(t *testing.T) {
	foreign := func(m *machinev1beta1.Machine) { m.Finalizers = []string{"example.com/hold"} }
	tcs := map[string]struct {
		mods []modifier
		want stepResult
	}{
		"ours goes on":                {[]modifier{builder.WithPhase("Running")}, stepResult{Proceed: true, Phase: "Deleting"}},
		"its failure is forgotten":    {[]modifier{withError("wrong")}, stepResult{Proceed: true, Phase: "Deleting"}},
		"not ours, or ours no longer": {[]modifier{foreign}, stepResult{Phase: "Deleting"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, runStep(t, &beginDelete{}, scopeFor(tc.mods...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDeleteWaitsUntilTheInstanceIsGone(t *testing.T) {
	s := scopeFor(builder.WithPhase("Deleting"))
	got := runStep(t, &deleteInstance{actuator: &settled{exists: true}, clock: clockAt(now)}, s)
	if diff := cmp.Diff(stepResult{Phase: "Deleting", After: 30 * time.Second, Exists: "True::"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWaitTakesTheActuatorsWordButNeverForEver(t *testing.T) {
	tcs := map[string]struct {
		after, want time.Duration
	}{
		"as long as it says":                     {7 * time.Second, 7 * time.Second},
		"no time said is no reason to forget it": {0, 30 * time.Second},
		"a time that is past neither":            {-time.Second, 30 * time.Second},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := &scope{}
			s.wait(actuators.InProgress(tc.after, "being made"))
			if got := s.Result().RequeueAfter; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestConditionsOfStepsAreWarningsWithATime(t *testing.T) {
	s := scopeFor(builder.WithPhase("Provisioning"))
	actuator := &fake.Actuator{}
	actuator.Fail(fake.Create, actuators.InsufficientResources("no quota"))
	runStep(t, &createInstance{actuator: actuator, clock: clockAt(now)}, s)
	want := []machinev1beta1.Condition{
		condition("InstanceExists", corev1.ConditionFalse, "InstanceNotCreated", "Instance has not been created: no quota"),
		condition("InstanceUpToDate", corev1.ConditionFalse, "InsufficientResources", "no quota"),
	}
	for i := range want {
		want[i].Severity = machinev1beta1.ConditionSeverityWarning
		want[i].LastTransitionTime = metav1.NewTime(now)
	}
	if diff := cmp.Diff(want, s.machine.Status.Conditions); diff != "" {
		t.Error(diff)
	}
}

func TestWhatTheLastAttemptFailedOfIsShownUntilOneSucceeds(t *testing.T) {
	tcs := map[string]struct {
		err  error
		want stepResult
	}{
		"the next is under way": {actuators.InProgress(time.Minute, "being made"), stepResult{
			Phase: "Provisioning", After: time.Minute,
			Exists: "False:InstanceNotCreated:Instance has not been created: being made", UpToDate: "False:InsufficientResources:no quota",
		}},
		"it has succeeded": {nil, stepResult{Phase: "Provisioning", After: 30 * time.Second, UpToDate: "True::"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(builder.WithPhase("Provisioning"), func(m *machinev1beta1.Machine) {
				setCondition(m, upToDate(corev1.ConditionFalse, "InsufficientResources", "no quota"), now)
			})
			actuator := &fake.Actuator{}
			if tc.err != nil {
				actuator.Fail(fake.Create, tc.err)
			}
			if diff := cmp.Diff(tc.want, runStep(t, &createInstance{actuator: actuator, clock: clockAt(now)}, s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhyNothingWasMadeIsNotForgottenByTheNextCheck(t *testing.T) {
	why := func(m *machinev1beta1.Machine) { setCondition(m, instanceNotCreated("no quota"), now) }
	was := func(m *machinev1beta1.Machine) { setCondition(m, instanceExists(corev1.ConditionTrue, "", ""), now) }
	tcs := map[string]struct {
		mod  modifier
		want string
	}{
		"the reason of the last attempt stays":         {why, "False:InstanceNotCreated:Instance has not been created: no quota"},
		"what was there and left no trace is reported": {was, "False:InstanceNotCreated:Instance has not been created"},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(builder.WithPhase("Provisioning"), tc.mod)
			got := runStep(t, &checkExists{actuator: &settled{}, clock: clockAt(now.Add(time.Hour))}, s)
			if diff := cmp.Diff(stepResult{Proceed: true, Phase: "Provisioning", Exists: tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyATrueDrainedLetsTheDeletionGoOn(t *testing.T) {
	says := func(status corev1.ConditionStatus) modifier {
		return func(m *machinev1beta1.Machine) { setCondition(m, condition("Drained", status, "", ""), now) }
	}
	tcs := map[string]struct {
		mods []modifier
		want bool
	}{
		"nobody has drained it yet":       {nil, false},
		"pods are in the way":             {[]modifier{says(corev1.ConditionFalse)}, false},
		"nobody knows":                    {[]modifier{says(corev1.ConditionUnknown)}, false},
		"drained, or nothing to drain":    {[]modifier{says(corev1.ConditionTrue)}, true},
		"what may be drained, is not yet": {[]modifier{func(m *machinev1beta1.Machine) { setCondition(m, condition("Drainable", "True", "", ""), now) }}, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			s := scopeFor(tc.mods...)
			if got := runStep(t, &waitForDrain{}, s); got.Proceed != tc.want || got.After != 0 {
				t.Errorf("got %+v, want %v and no requeue", got, tc.want)
			}
		})
	}
}
