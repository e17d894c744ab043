package driver

import (
	"context"
	"errors"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// failing returns a Machine whose last create failed with a class.
func failing(class, reason, message string) *machine {
	m := &machine{}
	m.Generation = 1
	m.Status.Conditions = []condition{
		{Type: instanceExists, Status: corev1.ConditionFalse, Reason: "InstanceNotCreated", Message: message},
		{Type: instanceUpToDate, Status: corev1.ConditionFalse, Reason: reason, Message: message},
	}
	if class != "" {
		m.Status.ProviderStatus.Failure = &failureStatus{Operation: operationCreate, Class: class}
	}
	return m
}

func TestFailuresHaveCodes(t *testing.T) {
	const waits = codes.OK
	cases := map[string]struct {
		machine *machine
		want    codes.Code
	}{
		"nothing is known yet":                {&machine{}, waits},
		"quota":                               {failing("Quota", "InsufficientResources", "QuotaExceeded"), codes.ResourceExhausted},
		"quota, of a manager without classes": {failing("", "InsufficientResources", "QuotaExceeded"), codes.ResourceExhausted},
		"wrong credentials":                   {failing("Credentials", "CreateError", "AADSTS7000215: Invalid client secret"), codes.Unauthenticated},
		"credentials without a right":         {failing("Credentials", "CreateError", "api error UnauthorizedOperation: you may not"), codes.PermissionDenied},
		"a denial":                            {failing("Credentials", "CreateError", "nodes is forbidden: User cannot create"), codes.PermissionDenied},
		"throttled":                           {failing("Throttled", "InsufficientResources", "Rate exceeded"), waits},
		"a lost connection":                   {failing("Transient", "CreateError", "connection refused"), waits},
		"an interrupted engine":               {failing("Interrupted", "CreateError", "was interrupted"), waits},
		"a killed engine":                     {failing("Killed", "CreateError", "was killed"), waits},
		"a lock":                              {failing("Locked", "CreateError", "is locked"), waits},
		"a state that was not saved":          {failing("StateNotSaved", "CreateError", "503"), waits},
		"what nobody knows":                   {failing("Unknown", "CreateError", "something else"), codes.Internal},
		"a class of later managers":           {failing("Novel", "CreateError", "something else"), codes.Internal},
		"a run that repeats a failure":        {running(failing("Quota", "InsufficientResources", "QuotaExceeded"), operationCreate), waits},
		"a check that failed":                 {failing("", reasonChecking, "etcdserver: timeout"), waits},
		"a spec that was just written":        {fresh(failing("Quota", "InsufficientResources", "QuotaExceeded")), waits},
		"an invalid configuration":            {failedPhase(reasonInvalid, "1"), codes.InvalidArgument},
		"one that was corrected since":        {failedPhase(reasonInvalid, "0"), waits},
		"an instance that is gone":            {failedPhase("", ""), codes.FailedPrecondition},
		"an instance that nobody can find":    {uncertain(), codes.FailedPrecondition},
		"a deletion, and an earlier failure":  {deleting(failing("Quota", "InsufficientResources", "QuotaExceeded"), operationCreate), waits},
		"a deletion that fails":               {deleting(failing("Credentials", "DeleteError", "401"), operationDestroy), codes.Unauthenticated},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.machine.failure()
			if got := codeOf(err); got != tc.want {
				t.Errorf("the failure is %v (%v), want %v", got, err, tc.want)
			}
		})
	}
}

func running(m *machine, operation string) *machine {
	m.Status.ProviderStatus.Run = &runStatus{Operation: operation}
	return m
}

func fresh(m *machine) *machine {
	m.fresh = true
	return m
}

func failedPhase(reason, generation string) *machine {
	m := &machine{}
	m.Generation = 1
	m.Status.Phase, m.Status.ErrorReason, m.Status.ErrorMessage = phaseFailed, reason, "provider_spec.cpu: it must be positive"
	if generation != "" {
		m.Annotations = map[string]string{annotationFailedGeneration: generation}
	}
	return m
}

func uncertain() *machine {
	m := &machine{}
	m.Status.Conditions = []condition{{Type: instanceExists, Status: corev1.ConditionUnknown, Reason: "InstanceUncertain", Message: "run x may have made an instance"}}
	return m
}

func deleting(m *machine, operation string) *machine {
	now := metav1.Now()
	m.DeletionTimestamp, m.Status.Phase = &now, phaseDeleting
	m.Status.ProviderStatus.Failure.Operation = operation
	return m
}

// codeOf returns the code as MCM reads it; OK for no error.
func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	s, ok := status.FromError(err)
	if !ok {
		return codes.Unknown
	}
	return s.Code()
}

func TestMessagesAreReadBackWhole(t *testing.T) {
	const message = "providerSpec.dataDisks[0].lun: it is 64 [and more"
	s, ok := status.FromError(failed(codes.InvalidArgument, message))
	if !ok || s.Code() != codes.InvalidArgument || s.Message() != "providerSpec.dataDisks(0).lun: it is 64 (and more" {
		t.Errorf("MCM reads %v %q, %v", s.Code(), s.Message(), ok)
	}
}

func TestErrorsOfTheAPIServerHaveCodes(t *testing.T) {
	group := schema.GroupResource{Group: "machine.openshift.io", Resource: "machines"}
	cases := map[string]struct {
		err  error
		want codes.Code
	}{
		"a refusal by the schema":  {apierrors.NewInvalid(schema.GroupKind{Kind: "Machine"}, "m", nil), codes.InvalidArgument},
		"a refusal by the webhook": {apierrors.NewForbidden(group, "m", errors.New(`admission webhook "validation.machine" denied the request: spec.providerSpec.value.cpu`)), codes.InvalidArgument},
		"a missing right":          {apierrors.NewForbidden(group, "m", errors.New("User cannot create")), codes.PermissionDenied},
		"an expired token":         {apierrors.NewUnauthorized("expired"), codes.Unauthenticated},
		"a conflict":               {apierrors.NewConflict(group, "m", errors.New("modified")), codes.Aborted},
		"a busy server":            {apierrors.NewServiceUnavailable("busy"), codes.Unavailable},
		"no connection":            {errors.New("connection refused"), codes.Unavailable},
		"a code of its own":        {failed(codes.ResourceExhausted, "quota"), codes.ResourceExhausted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := codeOf(coded(context.Background(), tc.err)); got != tc.want {
				t.Errorf("the code is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheEndOfAWaitHasACode(t *testing.T) {
	for cause, want := range map[error]codes.Code{
		errCreationTimeout: codes.DeadlineExceeded,
		errDeletionWait:    codes.DeadlineExceeded,
		errUnwanted:        codes.Canceled,
		errors.New("exit"): codes.Aborted,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if got := codeOf(coded(ctx, errors.New(": connection refused"))); got != want {
			t.Errorf("%v has code %v, want %v", cause, got, want)
		}
	}
}
