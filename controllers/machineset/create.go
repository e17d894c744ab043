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

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

const (
	// maxPerReconcile bounds one reconcile, so that a huge MachineSet does not block a worker for
	// long. The next one continues.
	maxPerReconcile = 500
	// maxConcurrentRequests bounds the concurrent requests of one MachineSet.
	maxConcurrentRequests = 32
	// randomLength and maxPrefix shape names as the API server does for generateName.
	randomLength = 5
	maxPrefix    = 63 - randomLength
)

// createMachines creates the missing Machines.
type createMachines struct {
	client   client.Client
	inFlight *inFlight
}

// Reconcile implements pipeline.Step.
func (c *createMachines) Reconcile(ctx context.Context, s *scope) (bool, error) {
	missing := min(-s.surplus(), s.room, maxPerReconcile)
	if missing <= 0 {
		return true, nil
	}
	if s.set.Spec.Template.Spec.ProviderSpec.Value == nil {
		// Checked here and not by validateSpec: such a MachineSet can still scale down.
		return false, reconcile.TerminalError(errors.New(
			"creating Machines: spec.template.spec.providerSpec.value is missing; set it to describe the instance of each " +
				"Machine"))
	}
	log.FromContext(ctx).Info("Creating Machines", "missing", -s.surplus(), "now", missing)
	err := slowStart(ctx, missing, maxConcurrentRequests,
		func(ctx context.Context, _ int) error { return c.create(ctx, s.set) })
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("creating Machines: %w", err)
	}
	return true, nil
}

// create creates one Machine. The name is generated here rather than by the API server, so that
// after a lost response it is possible to find out whether the Machine was created.
func (c *createMachines) create(ctx context.Context, set *machinev1beta1.MachineSet) error {
	machine := newMachine(set, generateName(set.Name))
	c.inFlight.creating(set, machine.Name)
	err := c.client.Create(ctx, machine)
	if refused(err) {
		c.inFlight.notCreated(set, machine.Name)
	}
	if err != nil {
		return err
	}
	return machineapi.NoteCompletion(ctx, c.client, machine, set.Spec.Template.Spec.ProviderSpec.Value)
}

// newMachine returns a Machine from the MachineSet's template. Nothing comes from the MachineSet's
// own metadata.
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

// generateName returns a random name for a Machine of the MachineSet.
func generateName(set string) string {
	prefix := set + "-"
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + rand.String(randomLength)
}

// refused reports whether the API server has refused the request. After any other error it may have
// been carried out.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}
