package offline

import (
	"bytes"
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// past is what a stand-in knows of what exists. It serves the one engine that plans changes of that.
type past struct {
	// records are what the states have of data sources.
	records []recorded
	// ask asks the provider itself, in a process that may die of it: without being configured, providers can tell what becomes of most
	// resources, and break down over some.
	ask asker
	// writes answers what the module writes in its resources of a type.
	writes func(kind string) *written

	mu sync.Mutex
	// missed says that a data source was asked for what no state has.
	missed bool
	// unsure has the types of resources for which the provider did not tell what becomes of them.
	unsure map[string]bool
}

// read answers ReadDataSource from the states.
func (p *past) read(request frame) (frame, error) {
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
		for _, one := range p.records {
			if one.answers(kind, config) {
				return appendField(nil, 1, appendField(nil, 2, one.values)), nil
			}
		}
		p.mu.Lock()
		p.missed = true
		p.mu.Unlock()
	}
	return nil, status.Error(codes.Unavailable, "reading a data source needs the infrastructure, which an offline plan does without")
}

// upgrade answers UpgradeResourceState: what the provider makes of an object, else the object as it is.
func (p *past) upgrade(ctx context.Context, method string, request frame) (frame, error) {
	if p == nil {
		return nil, status.Error(codes.Unavailable, "an offline plan has no state")
	}
	if answer, err := p.ask(ctx, method, request); err == nil && !fails(answer, 2) {
		return answer, nil
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

// plan answers what the provider says of a change; false where it does not say.
func (p *past) plan(ctx context.Context, method string, request frame, read planned) (frame, bool) {
	answer, err := p.ask(ctx, method, request)
	if err == nil && !fails(answer, 4) {
		return answer, true
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

func (p *past) written(kind string) *written { return p.writes(kind) }

// fails tells whether an answer has a diagnostic, in fields of the number, that is an error; or whether it cannot be read.
func fails(answer frame, diagnostics protowire.Number) bool {
	err := eachField(answer, func(number protowire.Number, _ uint64, content []byte) error {
		if number == diagnostics {
			return failureIn(content)
		}
		return nil
	})
	return err != nil
}

// keep answers an object as a plan has it that changes what exists, where its provider does not say: what is computed stays as it was, as
// the engine proposes; what the configuration leaves out does too, and nothing that was nothing of another kind.
func (b block) keep(prior, proposed []byte, said *written) ([]byte, error) {
	if said == nil {
		said = &written{}
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
			unsaid, both := isNull(value) && !said.attributes[name], isNothing(value) && isNothing(old)
			if unsaid || both {
				return old, nil
			}
			return value, nil
		}
		inner, ok := b.blocks[name]
		if !ok {
			return value, nil
		}
		return inner.keepAll(old, value, said.blocks[name])
	})
}

// keepAll does so for each object of a nested block that has one of the same place before it.
func (n nested) keepAll(prior, proposed []byte, said *written) ([]byte, error) {
	if n.nesting == nestingSingle || n.nesting == nestingGroup {
		return n.keep(prior, proposed, said)
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
		return n.keep(before[at-1], value, said)
	})
}

// fieldsOf answers the values of a map; none for what is no map.
func fieldsOf(value []byte) (map[string][]byte, error) {
	fields := map[string][]byte{}
	_, err := rewriteObject(value, func(name string, value []byte) ([]byte, error) {
		fields[name] = value
		return value, nil
	})
	return fields, err
}

// itemsIn answers the values of a list; none for what is no list.
func itemsIn(value []byte) ([][]byte, error) {
	var items [][]byte
	_, err := rewriteList(value, func(value []byte) ([]byte, error) {
		items = append(items, value)
		return value, nil
	})
	return items, err
}

// isNothing tells whether a value is one that older providers do not tell from null: false, zero, an empty text or collection.
func isNothing(value []byte) bool {
	switch string(value) {
	case "\x00", "\x80", "\x90", "\xa0", "\xc0", "\xc2", "\xd9\x00":
		return true
	}
	return false
}
