package pulumi

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"

	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/engine/bridge"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
)

// UnknownValue is how Pulumi writes a value that is known only after an update.
const UnknownValue = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

// PlannedValues is what a program would create or change, with the values that are known before.
type PlannedValues struct {
	// Resources are sorted by address.
	Resources []PlannedResource
	// Outputs are the outputs of the stack. Use [IsUnknown] and [IsSecret] on its values and on those
	// of resources.
	Outputs map[string]any
}

// PlannedResource is a resource that would be created or changed.
type PlannedResource struct {
	Address string
	Type    string
	Action  engine.Action
	// Inputs are the values from the program.
	Inputs map[string]any
	// Values are all known values of the resource, from the program and the provider, without the
	// engine's own.
	Values map[string]any
}

// IsUnknown reports whether a value is known only after an update.
func IsUnknown(value any) bool {
	text, ok := value.(string)
	return ok && strings.Contains(text, UnknownValue)
}

// IsSecret reports whether a value exists but is hidden.
func IsSecret(value any) bool {
	object, ok := value.(map[string]any)
	return ok && object[sig.Key] == sig.Secret
}

// Preview reports what the program would change relative to the checkpoint, without reading the
// infrastructure. It keeps no plan and changes nothing.
func (f *Workspace) Preview(ctx context.Context) (*PlannedValues, *engine.Report, error) {
	seen := &PlannedValues{}
	report, err := f.operate(ctx, operationCall{op: failure.OpPlan, preview: true, also: seen.take,
		call: func(ctx context.Context) error {
			return f.preview(ctx)
		}})
	slices.SortFunc(seen.Resources, func(a, b PlannedResource) int { return cmp.Compare(a.Address, b.Address) })
	return seen, report, err
}

func (s *PlannedValues) take(event apitype.EngineEvent) {
	if event.ResOutputsEvent == nil || event.ResOutputsEvent.Metadata.New == nil {
		return
	}
	m := event.ResOutputsEvent.Metadata
	if m.Type == stackType {
		s.Outputs = m.New.Outputs
		return
	}
	action, known := actions[m.Op]
	if internal(m) || !known || action == engine.ActionNoOp {
		return
	}
	s.Resources = append(s.Resources, PlannedResource{
		Address: addressOf(m.URN, m.Type), Type: m.Type, Action: action, Inputs: visible(m.New.Inputs),
		Values: visible(m.New.Inputs, m.New.Outputs),
	})
}

// visible merges values, where later ones win, without the bridges' private ones.
func visible(parts ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range parts {
		for name, value := range part {
			if !strings.HasPrefix(name, "__") {
				all[name] = value
			}
		}
	}
	return all
}

// attached lists the packages that are served elsewhere, in the CLI's format.
func (o Options) attached(relay *bridge.Relay) string {
	var all []string
	if relay != nil {
		all = append(all, bridge.Name+":"+strconv.Itoa(relay.Port()))
	}
	for name, port := range o.Attached {
		all = append(all, name+":"+strconv.Itoa(port))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
