package pulumi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/optdestroy"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/constant"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
	"github.com/machine-iac/machine-iac-operator/internal/engine/workdir"
)

// planFile keeps a plan between Plan and ApplyPlan.
const planFile = "plan.json"

// Plan reads the infrastructure and creates a plan for ApplyPlan. It changes nothing.
func (f *Workspace) Plan(ctx context.Context) (*engine.Report, error) {
	f.outdated = false
	note := func(event apitype.EngineEvent) { f.outdated = f.outdated || outdates(event) }
	return f.operate(ctx, operationCall{op: failure.OpPlan, preview: true, also: note,
		call: func(ctx context.Context) error {
			return f.preview(ctx, "--refresh", "--save-plan="+f.path(planFile))
		}})
}

// outdates reports whether a refresh found anything that differs from the checkpoint. Events hide
// secrets, both before and after, but a difference shows in the properties that the provider would
// restore.
func outdates(event apitype.EngineEvent) bool {
	if event.ResOutputsEvent == nil || event.ResOutputsEvent.Metadata.Op != apitype.OpRefresh {
		return false
	}
	m := event.ResOutputsEvent.Metadata
	if len(m.Diffs) > 0 || len(m.DetailedDiff) > 0 {
		return true
	}
	before, found := m.Old, m.New
	if before == nil || found == nil {
		return before != found
	}
	return before.ID != found.ID || !same(before.Inputs, found.Inputs) || !same(before.Outputs, found.Outputs)
}

// preview runs the CLI like the Automation API would. That serves events to itself, and blocks
// forever if the CLI dies before it has sent one.
func (f *Workspace) preview(ctx context.Context, options ...string) error {
	args := append([]string{"preview", "--exec-kind=" + constant.ExecKindAutoLocal,
		"--suppress-outputs", "--suppress-progress", "--stack=" + StackName}, options...)
	_, _, _, err := f.command.Run(ctx, f.path(programDir), nil, nil, nil, nil, args...)
	return err
}

// Apply updates without a check in between, in one process. Use it where the program can only
// create.
func (f *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	return f.up(ctx, failure.OpApply)
}

// ApplyPlan applies the plan kept by Plan, and only its steps. It reads the infrastructure again
// only if Plan found that the checkpoint was outdated, since a preview does not store what it
// found.
func (f *Workspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	options := []optup.Option{optup.Plan(f.path(planFile))}
	if f.outdated {
		options = append(options, optup.Refresh())
	}
	return f.up(ctx, failure.OpApplyPlan, options...)
}

func (f *Workspace) up(ctx context.Context, op failure.Op, options ...optup.Option) (*engine.Report, error) {
	return f.operate(ctx, operationCall{op: op, call: func(ctx context.Context) error {
		_, err := f.stack.Up(ctx, append(options, optup.SuppressProgress(), optup.SuppressOutputs())...)
		return err
	}})
}

// Destroy destroys everything in the checkpoint.
func (f *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	return f.operate(ctx, operationCall{op: failure.OpDestroy, call: func(ctx context.Context) error {
		// Providers report a missing object as deleted. The report must distinguish the two, which needs
		// a refresh.
		_, err := f.stack.Destroy(ctx, optdestroy.Refresh(), optdestroy.SuppressProgress(), optdestroy.SuppressOutputs())
		return err
	}})
}

// Checkpoint returns the stack's checkpoint as it is stored.
func (f *Workspace) Checkpoint() ([]byte, error) {
	raw, err := f.readState()
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	return stored(raw)
}

// operationCall is one process of the CLI.
type operationCall struct {
	op      failure.Op
	preview bool
	call    func(ctx context.Context) error
	// also, if set, gets each event unredacted.
	also func(apitype.EngineEvent)
}

// operate runs a process, passes on its output, and reports the result. The report is never nil.
func (f *Workspace) operate(ctx context.Context, o operationCall) (*engine.Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Unknown, Err: errors.New("the run is closed")}
	}
	if f.run.Destroys && o.op != failure.OpDestroy { // without a program, everything in the checkpoint would be deleted
		err := errors.New("the run was opened for a destroy, without its program")
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Unknown, Err: err}
	}
	if ctx.Err() != nil {
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
	clock := f.engine.options.Clock
	started := clock.Now()
	read := newReader(f.redact, f.run.Progress, o.preview)
	read.output, read.withheld, read.also = f.run.Output, f.run.Withheld, o.also
	f.command.read, f.command.last = read.read, outcome{}
	before := f.creating()
	saved := f.mirrored(ctx, o.preview, func() { _ = o.call(ctx) }) // f.command.last has the result
	report := read.finish()
	report.Text, report.TextWithheld = f.redact.Redact(f.command.last.text), f.redact.Withholds(f.command.last.text)
	report.Started, report.Duration = started, clock.Since(started)
	if f.command.last.code != 0 { // otherwise its plugins would continue unnoticed
		f.endProcesses()
	}
	err := f.conclude(ctx, o, report, saved)
	if failed, ok := errors.AsType[*failure.Error](err); ok && !o.preview && saved == nil && f.creating() > before {
		failed.Class = failure.Killed // the resource may exist even if it was reported as created: the disk may be full
	}
	// What a successful CLI writes besides its events is for interactive users.
	if err != nil && f.run.Output != nil && report.Text != "" && len(report.Errors()) == 0 {
		read.show(clock.Now(), report.Text, report.TextWithheld)
	}
	f.engine.options.Logger.V(1).Info("Pulumi ended", "operation", o.op, "folder", f.run.ID, "duration", report.Duration,
		"class", failure.ClassOf(err))
	return report, err
}

// endProcesses kills the plugins of a failed CLI. They have their own process groups, or are warm.
func (f *Workspace) endProcesses() {
	_, err := workdir.KillProcesses(f.dir)
	if err = errors.Join(err, f.relay.Discard()); err != nil {
		f.engine.options.Logger.Error(err, "Killing the plugins of a failed pulumi", "folder", f.run.ID)
	}
}

// conclude returns the operation's error, or nil if it succeeded.
func (f *Workspace) conclude(ctx context.Context, o operationCall, report *engine.Report, saved error) error {
	last := f.command.last
	failed := &failure.Error{Op: o.op, Diagnostics: report.Errors()}
	switch {
	case saved != nil:
		failed.Class, failed.Err = failure.StateNotSaved, saved
	case !last.started:
		failed.Class, failed.Err = failure.Transient, fmt.Errorf("pulumi did not start: %w", last.failed)
	case last.signaled:
		failed.Class, failed.Err = died(ctx, o), errors.Join(errors.New("pulumi was killed by a signal"), context.Cause(ctx))
	case last.code == 0 && o.preview && report.Planned.Operation != engine.OperationPlan:
		failed.Class, failed.Err = failure.Unknown, errors.New("the plan does not match pulumi's own count of changes")
	case last.code == 0:
		return nil
	case ctx.Err() != nil:
		failed.Class, failed.Err = failure.Interrupted, context.Cause(ctx)
	default:
		if len(failed.Diagnostics) == 0 && report.Text != "" {
			failed.Diagnostics = []failure.Diagnostic{{Severity: failure.SeverityError, Summary: redact.Brief(report.Text),
				Withheld: report.TextWithheld}}
		}
		failed.Class, failed.Hint = classify(failed.Diagnostics, f.run.Final), failure.HintOf(failed.Diagnostics,
			f.engine.options.Sandbox.Hint)
		if failed.Class == failure.Transient && !o.preview && connectionLost(failed.Diagnostics) {
			failed.Class = failure.Killed
		}
		if len(failed.Diagnostics) == 0 {
			failed.Err = errors.New("pulumi failed without an error message")
		}
	}
	return failed
}

// creating returns the number of unfinished creates in the checkpoint.
func (f *Workspace) creating() (count int) {
	raw, _ := f.readState()
	read, err := readCheckpoint(raw)
	if err != nil {
		return 0
	}
	for _, pending := range read.pending {
		if pending.Type == "creating" {
			count++
		}
	}
	return count
}

// died returns the class of a CLI that died. A preview changes nothing; the effects of anything
// else are unknown.
func died(ctx context.Context, o operationCall) failure.Class {
	switch {
	case !o.preview:
		return failure.Killed
	case ctx.Err() != nil:
		return failure.Interrupted
	default:
		return failure.Transient
	}
}

// connectionLost reports whether a provider disappeared during a change, so that the outcome is
// unknown. gRPC reports it with these words.
func connectionLost(diagnostics []failure.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics, func(d failure.Diagnostic) bool {
		return strings.Contains(d.Summary+"\n"+d.Detail, "error reading from server")
	})
}

// classify handles Pulumi's own errors and leaves the rest to the rules for providers.
func classify(diagnostics []failure.Diagnostic, final func(text string) bool) failure.Class {
	for _, diagnostic := range diagnostics {
		text := diagnostic.Summary + "\n" + diagnostic.Detail
		switch {
		case strings.Contains(text, "resource '") && strings.Contains(text, "' does not exist"):
			return failure.ImportMissing
		case strings.Contains(text, "the stack is currently locked by"):
			return failure.Locked
		}
	}
	return failure.Classify(diagnostics, final)
}
