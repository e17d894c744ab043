package machineset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// maxPerPass bounds one pass, so that a huge MachineSet cannot hold a worker for long. The next pass goes on.
	maxPerPass = 500
	// maxAtOnce bounds the requests of one MachineSet that are under way at the same time.
	maxAtOnce = 32
	// randomLength and maxPrefix shape names as the API server does for generateName.
	randomLength = 5
	maxPrefix    = 63 - randomLength
)

// creation makes the Machines that are missing.
type creation struct {
	client   client.Client
	inFlight *inFlight
}

// Reconcile implements step.
func (c *creation) Reconcile(ctx context.Context, s *scope) (bool, error) {
	missing := min(-s.surplus(), maxPerPass)
	if missing <= 0 {
		return true, nil
	}
	if s.set.Spec.Template.Spec.ProviderSpec.Value == nil {
		// Said here and not by validation: such a MachineSet can still shrink.
		return false, reconcile.TerminalError(errors.New(
			"creating Machines: spec.template.spec.providerSpec.value is missing; set it to describe the instance of each Machine"))
	}
	log.FromContext(ctx).Info("Creating Machines", "missing", -s.surplus(), "now", missing)
	err := slowStart(ctx, missing, maxAtOnce, func(ctx context.Context, _ int) error { return c.create(ctx, s.set) })
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating Machines: %w", err)
	}
	return true, nil
}

// create makes one Machine. Its name is chosen here and not by the API server, so that a request whose answer is lost can be
// told from one that was never carried out.
func (c *creation) create(ctx context.Context, set *machinev1beta1.MachineSet) error {
	machine := newMachine(set, generateName(set.Name))
	c.inFlight.creating(set, machine.Name)
	err := c.client.Create(ctx, machine)
	if refused(err) {
		c.inFlight.notCreated(set, machine.Name)
	}
	return err
}

// newMachine is a Machine as the MachineSet's template wants it. Nothing comes from the MachineSet's own metadata.
func newMachine(set *machinev1beta1.MachineSet, name string) *machinev1beta1.Machine {
	template := &set.Spec.Template
	return &machinev1beta1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			GenerateName:    set.Name + "-",
			Name:            name,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{ownerReference(set)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// generateName answers a random name for a Machine of the MachineSet.
func generateName(set string) string {
	prefix := set + "-"
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + rand.String(randomLength)
}

// refused reports whether the API server answered that it will not do what was asked. Any other error leaves open whether it did.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}
