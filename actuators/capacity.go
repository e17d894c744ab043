package actuators

import (
	"context"
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// CapacityEstimator is implemented by an actuator that knows how large an instance will be before there is one.
type CapacityEstimator interface {
	// Capacity returns what an instance of the Machine would offer, from the providerSpec alone: a MachineSet's template has no
	// more. It asks nothing of the infrastructure and starts nothing. Nil, without an error, means that the provider does not
	// know. The error is an [UnknownInstanceTypeError], an [InvalidConfiguration], or one that is worth another try.
	Capacity(ctx context.Context, machine *machinev1beta1.Machine) (*Capacity, error)
}

// Capacity is what one instance offers.
type Capacity struct {
	// CPU is the number of processors.
	CPU int64
	// MemoryMiB is the memory in MiB.
	MemoryMiB int64
	// GPU is the number of graphics processors.
	GPU int64
	// Architecture is the processor's, as the label kubernetes.io/arch writes it.
	Architecture string
	// Labels are more labels that the Node will have; nil for none.
	Labels map[string]string
}

// UnknownInstanceTypeError says that nobody knows how large the instance type is that a providerSpec names. An instance may be made
// all the same.
type UnknownInstanceTypeError struct {
	// Type is the instance type, Provider who should know it.
	Type, Provider string
	// Message names both, the field with the type, and the fix.
	Message string
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
