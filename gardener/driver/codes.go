package driver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reaction is the driver's reaction to a class of failures: the code for MCM, and whether to keep
// waiting because the manager retries the run and may succeed. Otherwise the error is returned at
// once, so that the autoscaler and people can react.
type reaction struct {
	code codes.Code
	wait bool
}

// reactions maps the engines' failure classes to reactions.
var reactions = map[string]reaction{
	"InvalidConfiguration": {code: codes.InvalidArgument},
	"Quota":                {code: codes.ResourceExhausted},
	"Credentials":          {code: codes.Unauthenticated},
	"Throttled":            {code: codes.Unavailable, wait: true},
	"Transient":            {code: codes.Unavailable, wait: true},
	"Interrupted":          {code: codes.Aborted, wait: true},
	"Killed":               {code: codes.Aborted, wait: true},
	"Locked":               {code: codes.Aborted, wait: true},
	"StateNotSaved":        {code: codes.Unavailable, wait: true},
	"ImportMissing":        {code: codes.Internal},
	"ProviderNotInstalled": {code: codes.Internal},
	"Unknown":              {code: codes.Internal},
}

// reasons maps the Machine API's error reasons to reactions, for a Machine without a failure class.
var reasons = map[string]reaction{
	reasonInvalid:           {code: codes.InvalidArgument},
	"InsufficientResources": {code: codes.ResourceExhausted},
	"UnsupportedChange":     {code: codes.FailedPrecondition},
}

// denials are clouds' messages about credentials that are valid but lack a permission.
var denials = []string{
	"forbidden", "denied", "unauthorizedoperation", "not authorized", "authorizationfailed", "permission", "403",
}

// failure returns why the Machine is not in its desired state if only outside help can change that;
// nil if a run may still succeed.
func (m *machine) failure() error {
	if m.fresh {
		return nil
	}
	if m.Status.Phase == phaseFailed {
		return m.failedPhase()
	}
	if m.Status.ProviderStatus.Run != nil {
		return nil
	}
	if exists := m.condition(instanceExists); exists.Status == corev1.ConditionUnknown && exists.Reason != reasonChecking {
		return failed(codes.FailedPrecondition, fmt.Sprintf("%s: %s", exists.Reason, exists.Message))
	}
	current := m.condition(instanceUpToDate)
	if current.Status != corev1.ConditionFalse || current.Reason == reasonChecking || m.stale() {
		return nil
	}
	does := m.reaction(current)
	if does.wait {
		return nil
	}
	return failed(does.code, current.Message)
}

// stale reports whether the failure of a Machine being deleted predates its deletion.
func (m *machine) stale() bool {
	last := m.Status.ProviderStatus.Failure
	return m.DeletionTimestamp != nil && (last == nil || last.Operation != operationDestroy)
}

// failedPhase returns the error of a permanently failed Machine, or nil if the failure predates its
// last change.
func (m *machine) failedPhase() error {
	if at, err := strconv.ParseInt(m.Annotations[annotationFailedGeneration], 10, 64); err == nil && at != m.Generation {
		return nil
	}
	code := codes.FailedPrecondition // the instance is gone or no longer known
	if m.Status.ErrorReason == reasonInvalid {
		code = codes.InvalidArgument
	}
	return failed(code, m.Status.ErrorMessage)
}

// reaction returns the reaction to the failure in a condition.
func (m *machine) reaction(reported condition) reaction {
	var does reaction
	known := false
	if last := m.Status.ProviderStatus.Failure; last != nil {
		does, known = reactions[last.Class]
	}
	if !known {
		if does, known = reasons[reported.Reason]; !known {
			does = reaction{code: codes.Internal}
		}
	}
	if does.code == codes.Unauthenticated && denied(reported.Message) {
		does.code = codes.PermissionDenied
	}
	return does
}

func denied(message string) bool {
	message = strings.ToLower(message)
	for _, text := range denials {
		if strings.Contains(message, text) {
			return true
		}
	}
	return false
}

// failed returns an MCM error. MCM parses its text and reserves square brackets.
func failed(code codes.Code, message string) error {
	return status.Error(code, strings.NewReplacer("[", "(", "]", ")").Replace(message))
}

// coded returns an error with an MCM code: the call's, the cause of the context's end, or the API
// server's.
func coded(ctx context.Context, err error) error {
	if already := new(status.Status); errors.As(err, &already) {
		return already
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errUnwanted):
		return failed(codes.Canceled, withLast(cause, err))
	case errors.Is(cause, errCreationTimeout), errors.Is(cause, errDeletionWait),
		errors.Is(cause, context.DeadlineExceeded):
		return failed(codes.DeadlineExceeded, withLast(cause, err))
	case cause != nil:
		return failed(codes.Aborted, withLast(cause, err))
	}
	return failed(codeOfAPI(err), err.Error())
}

// withLast adds the last known error to the reason why a wait ended.
func withLast(cause, last error) string {
	if last == nil || errors.Is(last, context.Canceled) || errors.Is(last, context.DeadlineExceeded) {
		return cause.Error()
	}
	return cause.Error() + last.Error()
}

// codeOfAPI returns the code of an API server error.
func codeOfAPI(err error) codes.Code {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), admissionDenied(err):
		return codes.InvalidArgument
	case apierrors.IsUnauthorized(err):
		return codes.Unauthenticated
	case apierrors.IsForbidden(err):
		return codes.PermissionDenied
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return codes.Aborted
	default:
		return codes.Unavailable
	}
}

// admissionDenied reports whether a webhook rejected an object because of its providerSpec. The API
// server's own refusal for missing permissions has the same reason but another text.
func admissionDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "admission webhook")
}

// messageOf returns the text of an error without MCM's wrapping.
func messageOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
