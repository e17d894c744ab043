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

// rightsMend is what helps who lacks a right.
const rightsMend = "docs/kubectl-machine.md lists the rights that each command needs"

// once is a client that gives up at the first refusal, as a person waits for the answer, and says what mends it.
type once struct {
	client.Client
	host string
}

// Get implements client.Reader.
func (o once) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := o.Client.Get(ctx, key, object, options...)
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return o.told(err)
}

// List implements client.Reader.
func (o once) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := o.Client.List(ctx, list, options...); err != nil {
		return o.told(err)
	}
	return nil
}

func (o once) told(err error) error {
	a := &answer{denied: apierrors.IsForbidden(err), text: err.Error()}
	switch {
	case a.denied:
		a.text = fmt.Sprintf("%v; %s", err, rightsMend)
	case apierrors.IsUnauthorized(err):
		a.text = "the API server does not know these credentials; log in again, or choose others with --context or --kubeconfig"
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		a.text = "the cluster has no Machine API: its CRDs are missing; choose another cluster with --context, or install them with " +
			"'kubectl apply -k install/kubernetes'"
	case errors.Is(err, context.DeadlineExceeded):
		a.text = fmt.Sprintf("the API server at %s took too long; --request-timeout gives it more time", o.host)
	case !isStatus(err):
		a.text = fmt.Sprintf("the API server at %s does not answer: %v; check --kubeconfig and --context", o.host, err)
	}
	return a
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// answer is an error of the API server with its mend. It hides the error's type, so that nobody tries again.
type answer struct {
	denied bool
	text   string
}

func (a *answer) Error() string { return a.text }

// Denied reports whether an answer to a client of [NewClient] says that a right is missing.
func Denied(err error) bool {
	a, ok := errors.AsType[*answer](err)
	return ok && a.denied
}
