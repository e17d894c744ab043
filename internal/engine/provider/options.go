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

// Options say which provider plugins are kept running between runs. Starting one costs most of a run's CPU time; each costs
// its memory while it is kept. A warm provider does not find the module's files in its working folder, as one that the engine
// starts does.
type Options struct {
	// Max is how many providers may run at once; zero has every engine start its own.
	Max int
	// Uses is how many runs a provider serves before it is replaced; zero means DefaultUses.
	Uses int
	// IdleTTL is how long a provider waits for the next run before it is ended; zero means DefaultIdleTTL.
	IdleTTL time.Duration
	// MaxAge is how long after its start a provider is lent; zero means DefaultMaxAge.
	MaxAge time.Duration
	// Memory is what the providers may take together that no run uses, in bytes; zero means DefaultMemory.
	Memory int64
	// Sandbox confines the providers; nil confines nothing.
	Sandbox *sandbox.Sandbox
	Logger  logr.Logger
	// Clock says when providers are too old; nil means the machine's.
	Clock clock.WithDelayedExecution
}

// Validate refuses numbers and durations below zero.
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
