package reporting

import (
	"errors"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

// Metrics are the Prometheus series of the actuator.
type Metrics struct {
	// failures counts by failed operation. A drift check counts as an update, as in its event.
	failures    map[runs.Operation]*prometheus.CounterVec
	driftChecks *prometheus.CounterVec
	looks       *prometheus.CounterVec
	repairs     *prometheus.CounterVec
	// takeovers counts locks taken over from a dead manager. found counts instances found again by
	// a lookup. unsaved counts states that an engine failed to save, by what became of them.
	takeovers, found prometheus.Counter
	unsaved          *prometheus.CounterVec
}

// NewMetrics returns the series of an actuator with runners for the given engines. Collectors
// returns them for registration.
func NewMetrics(engines ...v1alpha1.Engine) *Metrics {
	failures := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{"name", "namespace", "reason"})
	}
	m := &Metrics{
		failures: map[runs.Operation]*prometheus.CounterVec{
			runs.Create: failures("mapi_instance_create_failed",
				"Failed creates. reason is the engine's error class or the Machine API's reason."),
			runs.Update: failures("mapi_instance_update_failed",
				"Failed updates and drift checks. reason is the engine's error class or the Machine API's reason."),
			runs.Destroy: failures("mapi_instance_delete_failed",
				"Failed destroys. reason is the engine's error class or the Machine API's reason."),
		},
		driftChecks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_drift_checks_total", Help: "Drift checks. result is unchanged, changed, missing or failed.",
		}, []string{"engine", "result"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_instance_checks_total",
			Help: "Looks at instances between drift checks. result is there, missing or failed.",
		}, []string{"engine", "result"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_drift_repairs_total",
			Help: "Repairs of changed instances. result is repaired, unchanged, refused or failed.",
		}, []string{"engine", "result"}),
		takeovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "machine_iac_lock_takeovers_total", Help: "State locks taken over from dead managers.",
		}),
		found: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "machine_iac_instances_found_total", Help: "Instances of abandoned runs that a lookup found.",
		}),
		unsaved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machine_iac_unsaved_states_total",
			Help: "States that an engine could not save. result is saved (later), dropped (the stored state has " +
				"everything), orphaned or unreadable.",
		}, []string{"result"}),
	}
	for _, result := range []UnsavedResult{UnsavedSaved, UnsavedDropped, UnsavedOrphaned, UnsavedUnreadable} {
		m.unsaved.WithLabelValues(string(result))
	}
	for _, name := range engines {
		for _, result := range []string{resultRepaired, resultUnchanged, resultRefused, resultFailed} {
			m.repairs.WithLabelValues(EngineLabel(name), result)
		}
		for _, result := range []string{resultUnchanged, resultChanged, resultMissing, resultFailed} {
			m.driftChecks.WithLabelValues(EngineLabel(name), result)
		}
		for _, result := range []string{resultThere, resultMissing, resultFailed} {
			m.looks.WithLabelValues(EngineLabel(name), result)
		}
	}
	return m
}

// EngineLabel returns the metric label of an engine.
func EngineLabel(name v1alpha1.Engine) string { return strings.ToLower(string(name)) }

// Collectors returns the collectors to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.failures[runs.Create], m.failures[runs.Update], m.failures[runs.Destroy], m.driftChecks, m.looks, m.repairs,
		m.takeovers, m.found, m.unsaved,
	}
}

func (m *Metrics) failed(operation runs.Operation, machine *machinev1beta1.Machine, reason string) {
	if operation == runs.Drift {
		operation = runs.Update
	}
	m.failures[operation].WithLabelValues(machine.Name, machine.Namespace, reason).Inc()
}

// Forget removes the series of a deleted Machine.
func (m *Metrics) Forget(machine *machinev1beta1.Machine) {
	for _, counter := range m.failures {
		counter.DeletePartialMatch(prometheus.Labels{"name": machine.Name, "namespace": machine.Namespace})
	}
}

// The results of a drift check.
const (
	resultUnchanged = "unchanged"
	resultChanged   = "changed"
	resultMissing   = "missing"
	resultFailed    = "failed"
)

// Checked counts a drift check; found is nil if it failed.
func (m *Metrics) Checked(engine string, found *record.DriftCheck) {
	result := resultFailed
	if found != nil {
		result = map[record.DriftResult]string{record.DriftNone: resultUnchanged, record.DriftChanged: resultChanged,
			record.DriftMissing: resultMissing}[found.Result]
	}
	m.driftChecks.WithLabelValues(engine, result).Inc()
}

// resultThere is the result of a look that found the instance. Others are resultMissing and
// resultFailed.
const resultThere = "there"

// Looked counts a look at an instance.
func (m *Metrics) Looked(engine string, gone bool, outcome error) {
	result := resultThere
	switch {
	case outcome != nil:
		result = resultFailed
	case gone:
		result = resultMissing
	}
	m.looks.WithLabelValues(engine, result).Inc()
}

// UnsavedResult says what became of a state that an engine failed to save.
type UnsavedResult string

// The results for an unsaved state.
const (
	UnsavedSaved      UnsavedResult = "saved"
	UnsavedDropped    UnsavedResult = "dropped"
	UnsavedOrphaned   UnsavedResult = "orphaned"
	UnsavedUnreadable UnsavedResult = "unreadable"
)

// Unsaved counts a state that an engine failed to save.
func (m *Metrics) Unsaved(result UnsavedResult) { m.unsaved.WithLabelValues(string(result)).Inc() }

// TakenOver counts a lock that was taken over from a dead manager.
func (m *Metrics) TakenOver() { m.takeovers.Inc() }

// Found counts an instance that a lookup found.
func (m *Metrics) Found() { m.found.Inc() }

// The results of a repair. Others are resultUnchanged and resultFailed.
const (
	resultRepaired = "repaired"
	resultRefused  = "refused"
)

// Repaired counts a repair.
func (m *Metrics) Repaired(engine string, outcome error, changed bool) {
	result := resultUnchanged
	switch {
	case IsRefused(outcome):
		result = resultRefused
	case outcome != nil:
		result = resultFailed
	case changed:
		result = resultRepaired
	}
	m.repairs.WithLabelValues(engine, result).Inc()
}

// reasonOf returns a stable word for an error: the engine's failure class or else the Machine API's
// reason.
func reasonOf(operation runs.Operation, err error) string {
	if class := failure.ClassOf(err); class != failure.Unknown {
		return string(class)
	}
	if _, locked := errors.AsType[*state.LockedError](err); locked {
		return string(failure.Locked)
	}
	return string(Typed(operation, err).Reason)
}
