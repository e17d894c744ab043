package provider

import (
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/engine/sandbox"
)

// Defaults of Options.
const (
	DefaultUses    = 100
	DefaultIdleTTL = 5 * time.Minute
	DefaultMaxAge  = time.Hour
	DefaultMemory  = 1 << 30
)

// Options configure which provider plugins keep running between runs. Starting one costs most of a
// run's CPU time; keeping one costs its memory. Unlike a provider that the engine starts, a warm
// one does not have the module's files in its working folder.
type Options struct {
	// Max is how many providers may run at once. With zero, every engine starts its own.
	Max int
	// Uses is how many runs a provider serves before it is replaced. Defaults to DefaultUses.
	Uses int
	// IdleTTL is how long an idle provider is kept. Defaults to DefaultIdleTTL.
	IdleTTL time.Duration
	// MaxAge is the age from which a provider is no longer lent. Defaults to DefaultMaxAge.
	MaxAge time.Duration
	// Memory limits the total memory of idle providers in bytes. Defaults to DefaultMemory.
	Memory int64
	// Sandbox confines the providers; nil disables it.
	Sandbox *sandbox.Sandbox
	Logger  logr.Logger
	// Clock determines the age of providers. Defaults to the system clock.
	Clock clock.WithDelayedExecution
}

// Validate rejects negative numbers and durations.
func (o Options) Validate() error {
	if o.Max < 0 || o.Uses < 0 || o.IdleTTL < 0 || o.MaxAge < 0 || o.Memory < 0 {
		return errors.New("numbers and durations of warm providers must not be negative")
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Uses == 0 {
		o.Uses = DefaultUses
	}
	if o.IdleTTL == 0 {
		o.IdleTTL = DefaultIdleTTL
	}
	if o.MaxAge == 0 {
		o.MaxAge = DefaultMaxAge
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}
