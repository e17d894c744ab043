package actuators

import (
	"context"
	"errors"
	"fmt"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// CapacityEstimator is implemented by an actuator that can predict an instance's size.
type CapacityEstimator interface {
	// Capacity returns the capacity of a Machine's instance from the providerSpec alone, which is
	// all that a MachineSet's template has. It returns at once: if only the infrastructure knows the
	// size, it starts to ask for it and returns a [RequeueAfterError]. A nil result without an error
	// means that the provider does not know. The error is otherwise an [UnknownInstanceTypeError], an
	// [InvalidConfiguration], or transient.
	Capacity(ctx context.Context, machine *machinev1beta1.Machine) (*Capacity, error)
}

// Capacity is the capacity of one instance.
type Capacity struct {
	CPU       int64
	MemoryMiB int64
	GPU       int64
	// Architecture is the CPU architecture, as in the label kubernetes.io/arch.
	Architecture string
	// Labels are additional labels of the Node.
	Labels map[string]string
}

// UnknownInstanceTypeError reports an instance type of unknown size. The instance may still be
// created.
type UnknownInstanceTypeError struct {
	// Type is the instance type, and Provider is the provider that should know it.
	Type, Provider string
	// Message names the type, the provider and the field, and the fix.
	Message string
	// RetryAfter is when the size may be known, or zero.
	RetryAfter time.Duration
}

// Error implements error.
func (e *UnknownInstanceTypeError) Error() string { return e.Message }

// UnknownInstanceType returns an UnknownInstanceTypeError.
func UnknownInstanceType(instanceType, provider, format string, args ...any) *UnknownInstanceTypeError {
	return &UnknownInstanceTypeError{Type: instanceType, Provider: provider, Message: fmt.Sprintf(format, args...)}
}

// IsUnknownInstanceType reports whether err is, or wraps, an UnknownInstanceTypeError.
func IsUnknownInstanceType(err error) bool {
	var unknown *UnknownInstanceTypeError
	return errors.As(err, &unknown)
}
