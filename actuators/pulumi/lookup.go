package pulumi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/engine/pulumi"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
)

// lookupWorkspace is an open run that finds an instance missing from the checkpoint. The findings
// enter the stored checkpoint only when the plan is applied: until then their owner is unknown.
type lookupWorkspace struct {
	engine *pulumi.Engine
	search engine.Search
	run    pulumi.RunSpec
	states store
	// found are the objects that the checkpoint lacks, by address. opened is the run with them in
	// its checkpoint; nil before Plan.
	found  map[string]json.RawMessage
	opened *workspace
}

var _ runner.Workspace = &lookupWorkspace{}

var errNotPlanned = errors.New("a lookup must be planned first")

// Plan implements runner.Workspace.
func (s *lookupWorkspace) Plan(ctx context.Context) (*engine.Report, error) {
	lookup, err := s.engine.RunSearch(ctx, s.search, s.run)
	if err != nil {
		return &engine.Report{}, err
	}
	if s.found, err = missing(s.run.Checkpoint, lookup); err != nil {
		return &engine.Report{}, err
	}
	if len(s.found) == 0 {
		return &engine.Report{}, &failure.Error{Op: failure.OpPlan, Class: failure.ImportMissing,
			Err: errors.New("the lookup found nothing")}
	}
	adopted := s.run
	if adopted.Checkpoint, err = pulumi.Adopt(s.run.Checkpoint, lookup); err != nil {
		return &engine.Report{}, err
	}
	opened, err := s.engine.Open(ctx, adopted)
	if err != nil {
		return &engine.Report{}, err
	}
	s.opened = &workspace{Workspace: opened, states: s.states}
	report, err := s.opened.Plan(ctx)
	if err == nil {
		imports(report, s.found)
	}
	return report, err
}

// missing returns the objects that a lookup has read and the checkpoint lacks.
func missing(checkpoint, lookup []byte) (map[string]json.RawMessage, error) {
	found, err := pulumi.LookupResources(lookup)
	if err != nil || checkpoint == nil {
		return found, err
	}
	raw, err := statefile.Checkpoint{Lineage: "any", Raw: checkpoint}.Encode()
	if err != nil {
		return nil, err
	}
	known, err := statefile.Parse(raw)
	if err != nil {
		return nil, err
	}
	for _, resource := range known.Managed() {
		delete(found, resource.Address())
	}
	return found, nil
}

// imports marks objects as imported in a plan. Pulumi plans as if they had always been there.
func imports(report *engine.Report, found map[string]json.RawMessage) {
	left := maps.Clone(found)
	for i, change := range report.Changes {
		if _, imported := left[change.Address]; imported {
			report.Changes[i].Import = true
			delete(left, change.Address)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(left)) {
		report.Changes = append(report.Changes, engine.Change{
			Ref: engine.Ref{Name: nameOf(address)}, Address: address, Action: engine.ActionNoOp, Import: true,
		})
	}
	report.Planned.Import += len(found)
}

// nameOf returns the name in an address, type.name. A type has two colons. Dots may precede the
// second colon and occur in the name.
func nameOf(address string) string {
	parts := strings.SplitN(address, ":", 3)
	_, name, _ := strings.Cut(parts[len(parts)-1], ".")
	return name
}

// Planned implements runner.Workspace. Pulumi's previews show no values.
func (s *lookupWorkspace) Planned(context.Context) (*engine.PlannedObjects, error) {
	planned := &engine.PlannedObjects{Imported: s.found}
	if s.opened != nil {
		planned.Changed = s.opened.changed
	}
	return planned, nil
}

// ApplyPlan implements runner.Workspace.
func (s *lookupWorkspace) ApplyPlan(ctx context.Context) (*engine.Report, error) {
	if s.opened == nil {
		return &engine.Report{}, errNotPlanned
	}
	return s.opened.ApplyPlan(ctx)
}

// Apply implements runner.Workspace. It always fails, because findings must be checked first.
func (s *lookupWorkspace) Apply(context.Context) (*engine.Report, error) {
	return &engine.Report{}, errNotPlanned
}

// Destroy implements runner.Workspace. It always fails, as Apply does.
func (s *lookupWorkspace) Destroy(context.Context) (*engine.Report, error) {
	return &engine.Report{}, errNotPlanned
}

// Unsaved implements runner.Workspace.
func (s *lookupWorkspace) Unsaved() bool { return s.opened != nil && s.opened.Unsaved() }

// Save implements runner.Workspace.
func (s *lookupWorkspace) Save(ctx context.Context) error {
	if s.opened == nil {
		return nil
	}
	return s.opened.Save(ctx)
}

// Keep implements runner.Workspace.
func (s *lookupWorkspace) Keep() error {
	if s.opened == nil {
		return nil
	}
	return s.opened.Keep()
}

// Close implements runner.Workspace.
func (s *lookupWorkspace) Close() error {
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}
