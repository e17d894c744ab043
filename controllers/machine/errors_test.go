package machine_test

import (
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

var (
	errPlain     = errors.New("connection refused")
	errInvalid   = fmt.Errorf("rendering: %w", actuators.InvalidConfiguration("cpu: a number is required"))
	errProgress  = fmt.Errorf("wrapped: %w", actuators.InProgress(7*time.Second, "being worked on"))
	errQuota     = actuators.InsufficientResources("no quota")
	errUncertain = fmt.Errorf("wrapped: %w", actuators.Uncertain(9*time.Second, "StateLost", "the state is lost"))
)

const stateLost = "Unknown:StateLost:the state is lost"

// outcome is what one pass returned, and what the Machine shows after it.
type outcome struct {
	Error string
	After time.Duration
	Phase string
	// Failure is errorReason and errorMessage, joined by a colon.
	Failure string
	// Exists and UpToDate are status, reason and message of the two conditions, joined by colons.
	Exists, UpToDate string
	Gone             bool
}

// errorCase is one error of a verb, in one situation of the Machine.
type errorCase struct {
	verb     fake.Verb
	err      error
	instance bool
	mods     []func(*machinev1beta1.Machine)
	deleting bool
	want     outcome
}

// Every error that an actuator may return, from every verb.
var _ = DescribeTable("An actuator's error", func(ctx SpecContext, tc errorCase) {
	namespace, err := plane.Namespace(ctx)
	Expect(err).NotTo(HaveOccurred())
	actuator := &fake.Actuator{}
	subject := builder.In(namespace, builder.Machine(append(tc.mods, builder.WithFinalizer())...))
	create(ctx, subject)
	if tc.instance {
		Expect(actuator.Create(ctx, subject.DeepCopy())).To(Succeed())
	}
	if tc.deleting {
		Expect(plane.Client.Delete(ctx, subject)).To(Succeed())
		sayDrained(ctx, subject, "True")
	}
	actuator.Fail(tc.verb, tc.err)
	_, result, err := byHand(subject, actuator, plane.Client).try(ctx)
	got := outcome{After: result.RequeueAfter}
	if err != nil {
		got.Error = err.Error()
	}
	if got.Gone = gone(ctx, subject)(); !got.Gone {
		shown(fresh(ctx, subject), &got)
	}
	Expect(got).To(Equal(tc.want))
	Expect(actuator.Calls(fake.Create)).To(HaveLen(creates(tc)), "calls of Create")
},
	// Exists: the queue sets the pace, whatever the error, and nobody knows whether there is an
	// instance.
	normal(fake.Exists, "of the providerSpec: not known", errInvalid, unknown(errInvalid)),
	normal(fake.Exists, "that bids to wait: not known, and its time is not honoured", errProgress, unknown(errProgress)),
	normal(fake.Exists, "of quota: not known", errQuota, unknown(errQuota)),
	normal(fake.Exists, "of any kind: not known", errPlain, unknown(errPlain)),
	normal(fake.Exists, "that is uncertain: shown, no error, and left to Update", errUncertain, outcome{Phase: "Running", After: 9 * time.Second, Exists: stateLost}),
	normal(fake.Exists, "that is uncertain without a time: looked at again all the same", actuators.Uncertain(0, "StateLost", "the state is lost"),
		outcome{Phase: "Running", After: 30 * time.Second, Exists: stateLost}),

	// Create: only what the user must change is the end.
	making("of the providerSpec: the end", errInvalid, outcome{
		Phase: "Failed", Failure: "InvalidConfiguration:cpu: a number is required",
		Exists: notMade(errInvalid.Error()), UpToDate: "False:InvalidConfiguration:" + errInvalid.Error(),
	}),
	making("that bids to wait: its time is honoured, and it is no error", errProgress, outcome{
		Phase: "Provisioning", After: 7 * time.Second, Exists: notMade("being worked on"),
	}),
	making("that bids to wait without a time: looked at again all the same", actuators.InProgress(0, "queued"), outcome{
		Phase: "Provisioning", After: 30 * time.Second, Exists: notMade("queued"),
	}),
	making("of quota: retried at the queue's pace and shown, not Failed", errQuota, outcome{
		Phase: "Provisioning", Error: "creating the instance: no quota",
		Exists: notMade("no quota"), UpToDate: "False:InsufficientResources:no quota",
	}),
	making("of throttling that says when: retried then", actuators.InsufficientResources("slow down").In(5*time.Minute), outcome{
		Phase: "Provisioning", After: 5 * time.Minute, Exists: notMade("slow down"), UpToDate: "False:InsufficientResources:slow down",
	}),
	making("of the engine: retried and shown", actuators.CreateFailed("the image is not ready"), outcome{
		Phase: "Provisioning", Error: "creating the instance: the image is not ready",
		Exists: notMade("the image is not ready"), UpToDate: "False:CreateError:the image is not ready",
	}),
	making("without a reason: shown as CreateError", &actuators.MachineError{Message: "odd"}, outcome{
		Phase: "Provisioning", Error: "creating the instance: odd", Exists: notMade("odd"), UpToDate: "False:CreateError:odd",
	}),
	making("of any kind: retried and shown", errPlain, outcome{
		Phase: "Provisioning", Error: "creating the instance: connection refused",
		Exists: notMade("connection refused"), UpToDate: "False:CreateError:connection refused",
	}),

	making("that is uncertain: shown and looked at again, neither Failed nor an error", errUncertain, outcome{
		Phase: "Provisioning", After: 9 * time.Second, Exists: stateLost,
	}),

	// Update: the phase stays, another look in 30 s.
	normal(fake.Update, "of the providerSpec: 30 s", errInvalid, refreshed(30*time.Second, "False:InvalidConfiguration:"+errInvalid.Error())),
	normal(fake.Update, "that bids to wait: when it says, as the end of a run wakes the Machine anyhow", errProgress, refreshed(7*time.Second, "")),
	normal(fake.Update, "of quota: 30 s", errQuota, refreshed(30*time.Second, "False:InsufficientResources:no quota")),
	normal(fake.Update, "of quota that says later: then", errQuota.In(5*time.Minute), refreshed(5*time.Minute, "False:InsufficientResources:no quota")),
	normal(fake.Update, "of a change that cannot be, which says sooner: 30 s", actuators.UnsupportedChange("disk").In(time.Second),
		refreshed(30*time.Second, "False:UnsupportedChange:disk")),
	normal(fake.Update, "that is uncertain: when it says", errUncertain, refreshed(9*time.Second, stateLost)),
	normal(fake.Update, "of any kind: 30 s", errPlain, refreshed(30*time.Second, "False:UpdateError:connection refused")),

	// Delete: the Machine stays until it is known that the instance is gone.
	removing("of the providerSpec without addresses or an instance: goes", errInvalid, outcome{Gone: true}),
	removing("of the providerSpec without addresses, with an instance: said, and looked at again", errInvalid, outcome{
		Phase: "Deleting", After: 30 * time.Second, Exists: "True::", UpToDate: "False:InvalidConfiguration:" + errInvalid.Error(),
	}, withInstance),
	removing("of the providerSpec with a providerID alone: it had an instance, whoever made it", errInvalid, outcome{
		Phase: "Deleting", Error: "deleting the instance: " + errInvalid.Error(), UpToDate: "False:InvalidConfiguration:" + errInvalid.Error(),
	}, withProviderID),
	removing("of the providerSpec with a Node alone: it had an instance", errInvalid, outcome{
		Phase: "Deleting", Error: "deleting the instance: " + errInvalid.Error(), UpToDate: "False:InvalidConfiguration:" + errInvalid.Error(),
	}, withNode),
	removing("that is uncertain: the Machine stays", errUncertain, outcome{Phase: "Deleting", After: 9 * time.Second, Exists: stateLost}, withProviderID),
	removing("of the providerSpec with addresses: there is something to remove", errInvalid, outcome{
		Phase: "Deleting", Error: "deleting the instance: " + errInvalid.Error(), UpToDate: "False:InvalidConfiguration:" + errInvalid.Error(),
	}, withAddresses),
	removing("that bids to wait: its time is honoured, and it is no error", errProgress, outcome{Phase: "Deleting", After: 7 * time.Second}, withInstance),
	removing("of quota: retried at the queue's pace and shown", errQuota, outcome{
		Phase: "Deleting", Error: "deleting the instance: no quota", UpToDate: "False:InsufficientResources:no quota",
	}, withInstance),
	removing("of the engine that says when: retried then", actuators.DeleteFailed("held").In(time.Minute), outcome{
		Phase: "Deleting", After: time.Minute, UpToDate: "False:DeleteError:held",
	}, withInstance),
	removing("of any kind: retried and shown, although nothing may be there", errPlain, outcome{
		Phase: "Deleting", Error: "deleting the instance: connection refused", UpToDate: "False:DeleteError:connection refused",
	}),

	// Exists after Delete: not to know holds the Machine.
	stillThere("of the providerSpec: not known", errInvalid),
	stillThere("that bids to wait: not known", errProgress),
	stillThere("of quota: not known", errQuota),
	stillThere("of any kind: not known", errPlain),
	Entry("of Exists after Delete that is uncertain: the Machine stays", errorCase{
		verb: fake.Exists, err: errUncertain, deleting: true, mods: []func(*machinev1beta1.Machine){builder.WithPhase("Deleting")},
		want: outcome{Phase: "Deleting", After: 9 * time.Second, Exists: stateLost},
	}),
)

// normal is an error about a Machine that is Running.
func normal(verb fake.Verb, what string, err error, want outcome) TableEntry {
	mods := []func(*machinev1beta1.Machine){builder.WithPhase("Running"), builder.WithProviderID("fake://1")}
	return Entry(fmt.Sprintf("of %s %s", verb, what), errorCase{verb: verb, err: err, instance: true, mods: mods, want: want})
}

// making is an error of Create.
func making(what string, err error, want outcome) TableEntry {
	mods := []func(*machinev1beta1.Machine){builder.WithPhase("Provisioning")}
	return Entry("of Create "+what, errorCase{verb: fake.Create, err: err, mods: mods, want: want})
}

// removing is an error of Delete.
func removing(what string, err error, want outcome, changes ...func(*errorCase)) TableEntry {
	tc := errorCase{verb: fake.Delete, err: err, deleting: true, want: want}
	tc.mods = []func(*machinev1beta1.Machine){builder.WithPhase("Deleting")}
	for _, change := range changes {
		change(&tc)
	}
	return Entry("of Delete "+what, tc)
}

func stillThere(what string, err error) TableEntry {
	want := outcome{
		Phase: "Deleting", Error: "checking whether the instance still exists: " + err.Error(),
		Exists: "Unknown:ErrorCheckingProvider:Failed to check if machine exists: " + err.Error(),
	}
	mods := []func(*machinev1beta1.Machine){builder.WithPhase("Deleting")}
	return Entry("of Exists after Delete "+what, errorCase{verb: fake.Exists, err: err, deleting: true, mods: mods, want: want})
}

func withInstance(tc *errorCase)   { tc.instance = true }
func withProviderID(tc *errorCase) { tc.mods = append(tc.mods, builder.WithProviderID("fake://1")) }
func withNode(tc *errorCase)       { tc.mods = append(tc.mods, builder.WithNodeRef(builder.Node())) }
func withAddresses(tc *errorCase)  { tc.mods = append(tc.mods, builder.WithInternalIPs("10.0.0.1")) }

func unknown(err error) outcome {
	return outcome{
		Phase: "Running", Error: "checking whether the instance exists: " + err.Error(),
		Exists: "Unknown:ErrorCheckingProvider:Failed to check if machine exists: " + err.Error(),
	}
}

func refreshed(after time.Duration, upToDate string) outcome {
	return outcome{Phase: "Running", After: after, Exists: "True::", UpToDate: upToDate}
}

func notMade(why string) string {
	return "False:InstanceNotCreated:Instance has not been created: " + why
}

// creates is how often Create is called in a case: by the case itself for the instance, and by the
// pass.
func creates(tc errorCase) int {
	if tc.instance || tc.verb == fake.Create {
		return 1
	}
	return 0
}

// shown reads what a Machine says.
func shown(machine *machinev1beta1.Machine, into *outcome) {
	into.Phase = ptr.Deref(machine.Status.Phase, "")
	if machine.Status.ErrorReason != nil || machine.Status.ErrorMessage != nil {
		into.Failure = string(ptr.Deref(machine.Status.ErrorReason, "")) + ":" + ptr.Deref(machine.Status.ErrorMessage, "")
	}
	shown := func(kind machinev1beta1.ConditionType) string {
		if c := machineapi.FindCondition(machine.Status.Conditions, kind); c != nil {
			return fmt.Sprintf("%s:%s:%s", c.Status, c.Reason, c.Message)
		}
		return ""
	}
	into.Exists, into.UpToDate = shown(machinev1beta1.InstanceExistsCondition), shown("InstanceUpToDate")
}
