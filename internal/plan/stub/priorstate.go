package stub

import (
	"bytes"
	"context"
	"sync"

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
func (p *PriorState) read(request []byte) ([]byte, error) {
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
		for _, one := range p.DataSources {
			if one.matches(kind, config) {
				return appendField(nil, 1, appendField(nil, 2, one.Attributes)), nil
			}
		}
		p.mu.Lock()
		p.missed = true
		p.mu.Unlock()
	}
	return nil, status.Error(codes.Unavailable, "reading a data source needs the infrastructure, which an offline plan does without")
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
func (b Block) planChange(prior, proposed []byte, set *Configured) ([]byte, error) {
	if set == nil {
		set = &Configured{}
	}
	before, err := fieldsOf(prior)
	if err != nil {
		return nil, err
	}
	return rewriteObject(proposed, func(name string, value []byte) ([]byte, error) {
		old, had := before[name]
		if !had {
			return value, nil
		}
		if _, ok := b.attributes[name]; ok {
			unset, empty := isNull(value) && !set.attributes[name], isEmpty(value) && isEmpty(old)
			if unset || empty {
				return old, nil
			}
			return value, nil
		}
		inner, ok := b.blocks[name]
		if !ok {
			return value, nil
		}
		return inner.planChanges(old, value, set.blocks[name])
	})
}

// planChanges does so for each object of a nested block that had one at the same index.
func (n nested) planChanges(prior, proposed []byte, set *Configured) ([]byte, error) {
	if n.nesting == nestingSingle || n.nesting == nestingGroup {
		return n.planChange(prior, proposed, set)
	}
	before, err := itemsIn(prior)
	if err != nil || n.isDynamic() || n.nesting == nestingMap {
		return proposed, err
	}
	at := 0
	return rewriteList(proposed, func(value []byte) ([]byte, error) {
		at++
		if at > len(before) {
			return value, nil
		}
		return n.planChange(before[at-1], value, set)
	})
}

// fieldsOf returns the values of a map; none for what is no map.
func fieldsOf(value []byte) (map[string][]byte, error) {
	fields := map[string][]byte{}
	_, err := rewriteObject(value, func(name string, value []byte) ([]byte, error) {
		fields[name] = value
		return value, nil
	})
	return fields, err
}

// itemsIn returns the values of a list; none for what is no list.
func itemsIn(value []byte) ([][]byte, error) {
	var items [][]byte
	_, err := rewriteList(value, func(value []byte) ([]byte, error) {
		items = append(items, value)
		return value, nil
	})
	return items, err
}

// isEmpty reports whether older providers take a value for null: false, zero, an empty string or collection.
func isEmpty(value []byte) bool {
	switch string(value) {
	case "\x00", "\x80", "\x90", "\xa0", "\xc0", "\xc2", "\xd9\x00":
		return true
	}
	return false
}
