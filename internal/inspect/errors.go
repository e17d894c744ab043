package inspect

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RightsHint is what helps a user who lacks a right.
const RightsHint = "docs/kubectl-machine.md lists the rights that each command needs"

// noRetry is a client that gives up at the first error, since a person waits, and whose errors say how to fix what is wrong.
type noRetry struct {
	client.Client
	host string
}

// Get implements client.Reader.
func (n noRetry) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := n.Client.Get(ctx, key, object, options...)
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return explain(err, n.host)
}

// List implements client.Reader.
func (n noRetry) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := n.Client.List(ctx, list, options...); err != nil {
		return explain(err, n.host)
	}
	return nil
}

// Patch implements client.Writer.
func (n noRetry) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	err := n.Client.Patch(ctx, object, patch, options...)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return err
	}
	return explain(err, n.host)
}

// explain returns an error of the API server on a host with its fix.
func explain(err error, host string) error {
	e := &apiError{denied: apierrors.IsForbidden(err), absent: apierrors.IsNotFound(err), text: err.Error()}
	switch {
	case e.denied:
		e.text = fmt.Sprintf("%v; %s", err, RightsHint)
	case apierrors.IsUnauthorized(err):
		e.text = "the API server does not know these credentials; log in again, or choose others with --context or --kubeconfig"
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		e.text = "the cluster has no Machine API: its CRDs are missing; choose another cluster with --context, or install them with " +
			"'kubectl apply -k install/kubernetes'"
	case errors.Is(err, context.DeadlineExceeded):
		e.text = fmt.Sprintf("the API server at %s took too long; --request-timeout gives it more time", host)
	case !isStatus(err):
		e.text = fmt.Sprintf("the API server at %s does not respond: %v; check --kubeconfig and --context", host, err)
	}
	return e
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// apiError is an error of the API server with its fix. It hides the type of the error, so that no caller retries.
type apiError struct {
	denied, absent bool
	text           string
}

func (e *apiError) Error() string { return e.text }

// Denied reports whether an error of this package, or of a client of [NewClient], says that a right is missing.
func Denied(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.denied
}

// absent reports whether an error of this package says that the cluster lacks an object or its CRD.
func absent(err error) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.absent
}
