package pulumi

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Plan reads the infrastructure, plans and changes nothing. The plan is kept for ApplyPlan.
func (f *Workspace) Plan(ctx context.Context) (*engine.Report, error) {
	f.outdated = false
	note := func(event apitype.EngineEvent) { f.outdated = f.outdated || outdates(event) }
	return f.operate(ctx, operationCall{op: failure.OpPlan, preview: true, also: note, call: func(ctx context.Context) error {
		return f.preview(ctx, "--refresh", "--save-plan="+f.path(planFile))
	}})
}

// outdates reports whether a refresh has found anything else than the checkpoint has. Events hide what is secret, before and after alike: that
// it differs shows in the properties that the provider would bring back.
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

// preview asks the CLI as the Automation API would. That serves events to itself, and waits for them for ever where the CLI dies before it
// has sent one.
func (f *Workspace) preview(ctx context.Context, options ...string) error {
	args := append([]string{"preview", "--exec-kind=" + constant.ExecKindAutoLocal, "--suppress-outputs", "--suppress-progress", "--stack=" + StackName}, options...)
	_, _, _, err := f.command.Run(ctx, f.path(programDir), nil, nil, nil, nil, args...)
	return err
}

// Apply carries out what the program says unread, in one process. Use it where it can only create.
func (f *Workspace) Apply(ctx context.Context) (*engine.Report, error) {
	return f.up(ctx, failure.OpApply)
}

// ApplyPlan carries out the plan that Plan kept, and no step that is not in it. The infrastructure is read once more only where the checkpoint
// is not what Plan found: a preview keeps nothing of that.
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

// Destroy destroys everything that the checkpoint knows.
func (f *Workspace) Destroy(ctx context.Context) (*engine.Report, error) {
	return f.operate(ctx, operationCall{op: failure.OpDestroy, call: func(ctx context.Context) error {
		// Providers call an object that is not there deleted. Only a refresh distinguishes the two, which the report must.
		_, err := f.stack.Destroy(ctx, optdestroy.Refresh(), optdestroy.SuppressProgress(), optdestroy.SuppressOutputs())
		return err
	}})
}

// Checkpoint returns the stack's checkpoint, as it is to be stored.
func (f *Workspace) Checkpoint() ([]byte, error) {
	raw, err := os.ReadFile(f.stateFile())
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
	// also, if set, is given each event as it is, secrets and all.
	also func(apitype.EngineEvent)
}

// operate runs a process, passes on what it writes, and reports the result. The report is never nil.
func (f *Workspace) operate(ctx context.Context, o operationCall) (*engine.Report, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Unknown, Err: errors.New("the run is closed")}
	}
	if ctx.Err() != nil {
		return &engine.Report{}, &failure.Error{Op: o.op, Class: failure.Interrupted, Err: context.Cause(ctx)}
	}
	clock := f.engine.options.Clock
	started := clock.Now()
	read := newReader(f.redact, f.run.Progress, o.preview)
	read.output, read.withheld, read.also = f.run.Output, f.run.Withheld, o.also
	f.command.read, f.command.last = read.read, outcome{}
	saved := f.mirrored(ctx, o.preview, func() { _ = o.call(ctx) }) // how it ended is in f.command.last
	report := read.finish()
	report.Text, report.TextWithheld = f.redact.Redact(f.command.last.text), f.redact.Withholds(f.command.last.text)
	report.Started, report.Duration = started, clock.Since(started)
	if f.command.last.code != 0 { // its plugins would go on with what they do, unheard
		f.endProcesses()
	}
	err := f.conclude(ctx, o, report, saved)
	// What a CLI that succeeds writes beside its events is for interactive users.
	if err != nil && f.run.Output != nil && report.Text != "" && len(report.Errors()) == 0 {
		read.show(clock.Now(), report.Text, report.TextWithheld)
	}
	f.engine.options.Logger.V(1).Info("pulumi ended", "operation", o.op, "folder", f.run.ID, "duration", report.Duration, "class", failure.ClassOf(err))
	return report, err
}

// endProcesses ends the plugins of a CLI that failed. They have process groups of their own, or are kept running. The next CLI starts the host of
// the program itself.
func (f *Workspace) endProcesses() {
	_, err := workdir.KillProcesses(f.dir)
	err = errors.Join(err, f.relay.Discard(), f.host.Discard(), f.host.Close())
	f.host = nil
	f.command.environment = environmentOf(f.engine.environment(f))
	if err != nil {
		f.engine.options.Logger.Error(err, "Ending the plugins of a pulumi that failed", "folder", f.run.ID)
	}
}

// conclude makes the operation's error, nil if it succeeded.
func (f *Workspace) conclude(ctx context.Context, o operationCall, report *engine.Report, saved error) error {
	last := f.command.last
	failed := &failure.Error{Op: o.op, Diagnostics: report.Errors()}
	switch {
	case saved != nil:
		failed.Class, failed.Err = failure.StateNotSaved, saved
	case !last.started:
		failed.Class, failed.Err = failure.Transient, fmt.Errorf("pulumi did not start: %w", last.failed)
	case last.signaled:
		failed.Class, failed.Err = died(ctx, o), errors.Join(errors.New("pulumi was ended by a signal"), context.Cause(ctx))
	case last.code == 0 && o.preview && report.Planned.Operation != engine.OperationPlan:
		failed.Class, failed.Err = failure.Unknown, errors.New("the plan is not what pulumi counts")
	case last.code == 0:
		return nil
	case ctx.Err() != nil:
		failed.Class, failed.Err = failure.Interrupted, context.Cause(ctx)
	default:
		if len(failed.Diagnostics) == 0 && report.Text != "" {
			failed.Diagnostics = []failure.Diagnostic{{Severity: failure.SeverityError, Summary: redact.Brief(report.Text), Withheld: report.TextWithheld}}
		}
		failed.Class, failed.Hint = classify(failed.Diagnostics, f.run.Final), failure.HintOf(failed.Diagnostics, f.engine.options.Sandbox.Hint)
		if failed.Class == failure.Transient && !o.preview && connectionLost(failed.Diagnostics) {
			failed.Class = failure.Killed
		}
		if len(failed.Diagnostics) == 0 {
			failed.Err = errors.New("pulumi failed without an error message")
		}
	}
	return failed
}

// died returns the class of a CLI that died: a preview changes nothing, what anything else has done is not known.
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

// connectionLost reports whether a provider has gone away while it was asked to change something, so that the outcome is unknown: gRPC then ends
// the call with these words.
func connectionLost(diagnostics []failure.Diagnostic) bool {
	return slices.ContainsFunc(diagnostics, func(d failure.Diagnostic) bool {
		return strings.Contains(d.Summary+"\n"+d.Detail, "error reading from server")
	})
}

// classify knows what Pulumi itself says, and leaves the rest to the rules for providers.
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
