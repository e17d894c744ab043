package stub

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

// PriorState is what a stub provider knows of what exists. It is for the one engine that plans changes of that.
type PriorState struct {
	// DataSources are what the states have of data sources.
	DataSources []DataSource
	// Call calls the provider itself, in a process that may crash: providers can plan most resources without being configured, and panic
	// over some.
	Call Caller
	// Configured returns what the module's configuration sets in its resources of a type.
	Configured func(kind string) *Configured

	mu sync.Mutex
	// missed reports that a data source was read that no state has.
	missed bool
	// unsure has the types of resources whose change the provider did not plan.
	unsure map[string]bool
}

// Missed reports whether a data source was to be read that no state has.
func (p *PriorState) Missed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed
}

// IsUnsure reports whether the provider did not plan a change of a type of resources.
func (p *PriorState) IsUnsure(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unsure[kind]
}

// read returns the response to ReadDataSource, from the states.
func (p *PriorState) read(request []byte, schemas map[string]Block) ([]byte, error) {
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
	return nil, status.Error(codes.Unavailable, "reading a data source needs the infrastructure, which an offline plan does without")
}

// find returns the attributes of a data source that a state has; nil where none has it.
func (p *PriorState) find(kind string, config []byte, schema Block) json.RawMessage {
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

// upgrade returns the response to UpgradeResourceState: the provider's, else the object as it is.
func (p *PriorState) upgrade(ctx context.Context, method string, request []byte) ([]byte, error) {
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

// plan returns the provider's response to PlanResourceChange; false where it fails.
func (p *PriorState) plan(ctx context.Context, method string, request []byte, read planRequest) ([]byte, bool) {
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

// fails reports whether a response has a diagnostic, in fields of the number, that is an error, or cannot be read.
func fails(response []byte, diagnostics protowire.Number) bool {
	err := eachField(response, func(number protowire.Number, _ uint64, content []byte) error {
		if number == diagnostics {
			return failureIn(content)
		}
		return nil
	})
	return err != nil
}

// planChange returns the planned value of an object that exists, where its provider does not plan it: what is computed stays as it was, as
// the engine proposes; what the configuration leaves out does too, and so does an empty value that becomes empty in another way.
func (b Block) planChange(prior, proposed cty.Value, set *Configured) cty.Value {
	if set == nil {
		set = &Configured{}
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

// planChanges does so for each object of a nested block that had one at the same index.
func (n nested) planChanges(prior, proposed cty.Value, set *Configured) cty.Value {
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

// isEmpty reports whether older providers take a value for null: false, zero, an empty string or collection.
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
