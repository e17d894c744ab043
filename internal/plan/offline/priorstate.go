package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// priorState is what a stub provider knows about existing objects. One engine process uses it.
type priorState struct {
	DataSources []dataSource
	// Call calls the real provider in a separate process, which may crash: providers can plan most resources
	// unconfigured, and panic on some.
	Call caller
	// Configured returns what the module's configuration sets in its resources of a type.
	Configured func(kind string) *configured

	mu sync.Mutex
	// missed reports that a data source was read that no state has.
	missed bool
	// unsure has the resource types whose change the provider did not plan.
	unsure map[string]bool
}

// Missed reports whether a data source was read that no state has.
func (p *priorState) Missed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed
}

// IsUnsure reports whether the provider failed to plan a change of a resource type.
func (p *priorState) IsUnsure(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsure[kind]
}

// read answers ReadDataSource from the states.
func (p *priorState) read(request []byte, schemas map[string]block) ([]byte, error) {
	var kind string
	var config []byte
	err := eachField(request, func(number protowire.Number, _ uint64, content []byte) (err error) {
		switch number {
		case 1:
			kind = string(content)
		case 2:
			config, err = packedOf(content)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if p != nil {
		if attributes := p.find(kind, config, schemas[kind]); attributes != nil {
			return appendField(nil, 1, appendField(nil, 2, attributes)), nil
		}
		p.mu.Lock()
		p.missed = true
		p.mu.Unlock()
	}
	return nil, status.Error(codes.Unavailable, "reading a data source needs the infrastructure, which an offline "+
		"plan does without")
}

// find returns the attributes of a data source from a state, or nil.
func (p *priorState) find(kind string, config []byte, schema block) json.RawMessage {
	arguments, err := schema.unmarshal(config)
	if err != nil {
		return nil
	}
	for _, one := range p.DataSources {
		if one.matches(kind, arguments) {
			return one.Attributes
		}
	}
	return nil
}

// upgrade answers UpgradeResourceState with the provider's response, or else the unchanged object.
func (p *priorState) upgrade(ctx context.Context, method string, request []byte) ([]byte, error) {
	if p == nil {
		return nil, status.Error(codes.Unavailable, "an offline plan has no state")
	}
	if response, err := p.Call(ctx, method, request); err == nil && !fails(response, 2) {
		return response, nil
	}
	var object []byte
	err := eachField(request, func(number protowire.Number, _ uint64, content []byte) error {
		if number != 3 {
			return nil
		}
		return eachField(content, func(number protowire.Number, _ uint64, content []byte) error {
			if number == 1 {
				object = content
			}
			return nil
		})
	})
	return appendField(nil, 1, appendField(nil, 2, object)), err
}

// plan returns the provider's response to PlanResourceChange, or false if it fails.
func (p *priorState) plan(ctx context.Context, method string, request []byte, read planRequest) ([]byte, bool) {
	response, err := p.Call(ctx, method, request)
	if err == nil && !fails(response, 4) {
		return response, true
	}
	if !bytes.Equal(read.prior, read.proposed) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.unsure == nil {
			p.unsure = map[string]bool{}
		}
		p.unsure[read.kind] = true
	}
	return nil, false
}

// fails reports whether a response is malformed or has an error among its diagnostics, which are in the numbered field.
func fails(response []byte, diagnostics protowire.Number) bool {
	err := eachField(response, func(number protowire.Number, _ uint64, content []byte) error {
		if number == diagnostics {
			return failureIn(content)
		}
		return nil
	})
	return err != nil
}

// planChange plans a change of an existing object that its provider does not plan. Computed values stay as they were,
// as the engine proposes. So do values that the configuration omits, and empty values that become empty in another way.
func (b block) planChange(prior, proposed cty.Value, set *configured) cty.Value {
	if set == nil {
		set = &configured{}
	}
	if isUnset(prior) {
		return proposed
	}
	return rewriteObject(proposed, func(name string, value cty.Value) cty.Value {
		old := prior.GetAttr(name)
		if inner, ok := b.blocks[name]; ok {
			return inner.planChanges(old, value, set.blocks[name])
		}
		if value.IsNull() && !set.attributes[name] || isEmpty(value) && isEmpty(old) {
			return old
		}
		return value
	})
}

// planChanges applies planChange to each object of a nested block that had one at the same index.
func (n nested) planChanges(prior, proposed cty.Value, set *configured) cty.Value {
	if n.nesting == nestingSingle || n.nesting == nestingGroup {
		return n.planChange(prior, proposed, set)
	}
	if n.isDynamic() || n.nesting == nestingMap || isUnset(prior) {
		return proposed
	}
	before := prior.AsValueSlice()
	return rewriteList(proposed, func(at int, value cty.Value) cty.Value {
		if at >= len(before) {
			return value
		}
		return n.planChange(before[at], value, set)
	})
}

// isEmpty reports whether older providers treat a value as null: false, zero, an empty string or collection.
func isEmpty(value cty.Value) bool {
	switch of := value.Type(); {
	case value.IsNull():
		return true
	case !value.IsKnown():
		return false
	case of == cty.Bool:
		return value.False()
	case of == cty.Number:
		return value.AsBigFloat().Sign() == 0
	case of == cty.String:
		return value.AsString() == ""
	}
	return value.LengthInt() == 0
}
