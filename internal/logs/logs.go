// Package logs bounds what programs of this project log: never the bodies of requests, which hold Secrets.
package logs

import "github.com/go-logr/logr"

// maxVerbosity is the highest level that is logged. From 8 on, clients log the bodies of requests and responses, with the Secrets in them.
const maxVerbosity = 7

// WithoutBodies returns a logger that logs nothing above that level, whatever the flags say.
func WithoutBodies(logger logr.Logger) logr.Logger { return logger.WithSink(bounded{logger.GetSink()}) }

// bounded is a sink that is not enabled above maxVerbosity.
type bounded struct{ logr.LogSink }

// Enabled implements logr.LogSink.
func (b bounded) Enabled(level int) bool { return level <= maxVerbosity && b.LogSink.Enabled(level) }

// WithValues implements logr.LogSink.
func (b bounded) WithValues(pairs ...any) logr.LogSink {
	return bounded{b.LogSink.WithValues(pairs...)}
}

// WithName implements logr.LogSink.
func (b bounded) WithName(name string) logr.LogSink { return bounded{b.LogSink.WithName(name)} }
