package tofu

import "github.com/machine-iac/machine-iac-operator/internal/engine"

// The words of package engine in which this one reports.
type (
	// Class says what an error asks of whoever gets it.
	Class = engine.Class
	// Op is what the engine was asked for.
	Op = engine.Op
	// Error is an operation of the engine that failed.
	Error = engine.Error
	// Diagnostic is one error or warning of the engine or of a provider.
	Diagnostic = engine.Diagnostic
	// Severity is a diagnostic's weight.
	Severity = engine.Severity
	// Report is what one operation of the engine said.
	Report = engine.Report
	// Action is what an engine plans or does to one resource.
	Action = engine.Action
	// Change is what an engine plans for one resource.
	Change = engine.Change
	// Applied is a change that the engine carried out.
	Applied = engine.Applied
	// Summary is the engine's own count of changes.
	Summary = engine.Summary
	// Output is one output of the module.
	Output = engine.Output
	// Event tells that the engine works on a resource.
	Event = engine.Event
	// EventKind says what an Event tells.
	EventKind = engine.EventKind
)

// Its constants.
const (
	InvalidConfiguration = engine.InvalidConfiguration
	Quota                = engine.Quota
	Credentials          = engine.Credentials
	Throttled            = engine.Throttled
	Transient            = engine.Transient
	Interrupted          = engine.Interrupted
	Locked               = engine.Locked
	Killed               = engine.Killed
	StateNotSaved        = engine.StateNotSaved
	ImportMissing        = engine.ImportMissing
	Unknown              = engine.Unknown
	OpInit               = engine.OpInit
	OpOpen               = engine.OpOpen
	OpPlan               = engine.OpPlan
	OpApply              = engine.OpApply
	OpApplyPlan          = engine.OpApplyPlan
	OpDestroy            = engine.OpDestroy
	OpRefresh            = engine.OpRefresh
	SeverityError        = engine.SeverityError
	SeverityWarning      = engine.SeverityWarning
	ActionNoOp           = engine.ActionNoOp
	ActionMove           = engine.ActionMove
	ActionCreate         = engine.ActionCreate
	ActionRead           = engine.ActionRead
	ActionUpdate         = engine.ActionUpdate
	ActionReplace        = engine.ActionReplace
	ActionDelete         = engine.ActionDelete
	ActionImport         = engine.ActionImport
	ActionForget         = engine.ActionForget
	OperationPlan        = engine.OperationPlan
	OperationApply       = engine.OperationApply
	OperationDestroy     = engine.OperationDestroy
	EventStarted         = engine.EventStarted
	EventProgress        = engine.EventProgress
	EventCompleted       = engine.EventCompleted
	EventFailed          = engine.EventFailed
)

// ClassOf answers the class of the Error in err's chain, Unknown where there is none, and "" for nil.
func ClassOf(err error) Class { return engine.ClassOf(err) }
