package offline

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/encoding/protowire"
)

// This file reads messages of the plugin protocol field by field. The needed fields have the same numbers in protocols
// 5 and 6, which are frozen. See docs/adr/0007-pass-the-plugin-protocol-on-as-it-is.md.

// Fields of GetProviderSchema.Response.
const (
	fieldProviderSchema    = 1
	fieldResourceSchemas   = 2
	fieldDataSourceSchemas = 3
	fieldDiagnostics       = 4
	fieldProviderMeta      = 5
	fieldCapabilities      = 6
	fieldFunctions         = 7
)

// Nesting modes of a block or of an attribute's objects.
const (
	nestingSingle = 1
	nestingList   = 2
	nestingSet    = 3
	nestingMap    = 4
	nestingGroup  = 5
)

// block is the part of a schema block, or of an attribute's objects, that a stub provider needs.
type block struct {
	attributes map[string]attribute
	blocks     map[string]nested
}

type attribute struct {
	optional, computed, writeOnly bool
	// objects is nil for a plain type.
	objects *nested
	// kind is the type of a plain value; a dynamic value carries its type.
	kind cty.Type
}

type nested struct {
	block
	nesting  uint64
	required bool
}

func eachField(message []byte, visit func(number protowire.Number, varint uint64, content []byte) error) error {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		var varint uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			varint, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			content, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(number, kind, message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if err := visit(number, varint, content); err != nil {
			return err
		}
	}
	return nil
}

// appendField appends a length-delimited field.
func appendField(message []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), content)
}

// narrow drops the resources and data sources that a module does not use from a provider's schemas. Every engine
// process reads the schemas, and those of a large cloud are tens of megabytes. legacy is for protocol 5.
func narrow(response []byte, legacy bool, uses func(kind string) bool) ([]byte, error) {
	var kept []byte
	err := eachField(response, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case fieldResourceSchemas, fieldDataSourceSchemas:
			name, schema, err := entryOf(content)
			if err != nil || !uses(name) {
				return err
			}
			if legacy && number == fieldDataSourceSchemas {
				if schema, err = openOptional(schema); err != nil {
					return err
				}
				content = appendField(appendField(nil, 1, []byte(name)), 2, schema)
			}
		case fieldDiagnostics:
			return failureIn(content)
		case fieldProviderSchema, fieldProviderMeta, fieldCapabilities, fieldFunctions:
		default:
			return nil
		}
		kept = appendField(kept, number, content)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading a provider's schemas: %w", err)
	}
	return kept, nil
}

// openOptional returns a data source's schema with each optional attribute also computed. Many providers fill in such
// attributes on read although the schema does not say so; the engine would take them for null.
func openOptional(schema []byte) ([]byte, error) {
	return rewriteField(schema, 2, func(block []byte) ([]byte, error) {
		return rewriteField(block, 2, func(attribute []byte) ([]byte, error) {
			optional := false
			err := eachField(attribute, func(number protowire.Number, varint uint64, _ []byte) error {
				optional = optional || number == 5 && varint != 0
				return nil
			})
			if !optional || err != nil {
				return attribute, err
			}
			return protowire.AppendVarint(protowire.AppendTag(slices.Clone(attribute), 6, protowire.VarintType), 1), nil
		})
	})
}

// rewriteField returns a message with each field of the wanted number replaced by change.
func rewriteField(message []byte, wanted protowire.Number,
	change func(content []byte) ([]byte, error)) ([]byte, error) {
	var out []byte
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeField(message)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		field := message[:size]
		message = message[size:]
		if number != wanted || kind != protowire.BytesType {
			out = append(out, field...)
			continue
		}
		_, _, tag := protowire.ConsumeTag(field)
		content, _ := protowire.ConsumeBytes(field[tag:])
		changed, err := change(content)
		if err != nil {
			return nil, err
		}
		out = appendField(out, number, changed)
	}
	return out, nil
}

// failureIn returns a diagnostic's error, or nil for a warning.
func failureIn(diagnostic []byte) error {
	var severity uint64
	var summary, detail []byte
	err := eachField(diagnostic, func(number protowire.Number, varint uint64, content []byte) error {
		switch number {
		case 1:
			severity = varint
		case 2:
			summary = content
		case 3:
			detail = content
		}
		return nil
	})
	if err != nil || severity != severityError {
		return err
	}
	return fmt.Errorf("the provider reports: %s %s", summary, detail)
}

func entryOf(message []byte) (key string, value []byte, err error) {
	err = eachField(message, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case 1:
			key = string(content)
		case 2:
			value = content
		}
		return nil
	})
	return key, value, err
}

// schemasIn reads the schemas of resources or of data sources from the fields of one number.
func schemasIn(response []byte, field protowire.Number) (map[string]block, error) {
	found := map[string]block{}
	err := eachField(response, func(number protowire.Number, _ uint64, content []byte) error {
		if number != field {
			return nil
		}
		name, schema, err := entryOf(content)
		if err != nil {
			return err
		}
		return eachField(schema, func(number protowire.Number, _ uint64, content []byte) (err error) {
			if number == 2 {
				found[name], err = readBlock(content)
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading a provider's schemas: %w", err)
	}
	return found, nil
}

func readBlock(message []byte) (block, error) {
	read := block{attributes: map[string]attribute{}, blocks: map[string]nested{}}
	err := eachField(message, func(number protowire.Number, _ uint64, content []byte) error {
		switch number {
		case 2:
			return read.addAttribute(content)
		case 3:
			return read.addBlock(content)
		}
		return nil
	})
	return read, err
}

// addAttribute reads a Schema.Attribute. Write-only is field 10, a number, in protocol 5 and field 11 in protocol 6,
// where field 10 is a message.
func (b *block) addAttribute(message []byte) error {
	var name string
	var read attribute
	err := eachField(message, func(number protowire.Number, varint uint64, content []byte) error {
		switch {
		case number == 1:
			name = string(content)
		case number == 2:
			kind, err := typeOf(content)
			read.kind = kind
			return err
		case number == 5:
			read.optional = varint != 0
		case number == 6:
			read.computed = varint != 0
		case number == 10 && content != nil:
			objects, err := readObject(content)
			read.objects = objects
			return err
		case number == 10, number == 11:
			read.writeOnly = varint != 0
		}
		return nil
	})
	b.attributes[name] = read
	return err
}

// readObject reads a Schema.Object of protocol 6.
func readObject(message []byte) (*nested, error) {
	read := &nested{block: block{attributes: map[string]attribute{}}}
	err := eachField(message, func(number protowire.Number, varint uint64, content []byte) error {
		switch number {
		case 1:
			return read.addAttribute(content)
		case 3:
			read.nesting = varint
		}
		return nil
	})
	return read, err
}

// addBlock reads a Schema.NestedBlock.
func (b *block) addBlock(message []byte) error {
	var name string
	var read nested
	err := eachField(message, func(number protowire.Number, varint uint64, content []byte) (err error) {
		switch number {
		case 1:
			name = string(content)
		case 2:
			read.block, err = readBlock(content)
		case 3:
			read.nesting = varint
		case 4:
			read.required = varint > 0
		}
		return err
	})
	b.blocks[name] = read
	return err
}

// isDynamic reports whether a value in the block carries its own type. Lists of such blocks have another encoding.
func (b block) isDynamic() bool {
	for _, one := range b.attributes {
		if one.objects == nil && one.kind.HasDynamicTypes() || one.objects != nil && one.objects.isDynamic() {
			return true
		}
	}
	for _, one := range b.blocks {
		if one.isDynamic() {
			return true
		}
	}
	return false
}

// isComputed reports whether the provider computes a value in the block.
func (b block) isComputed() bool {
	for _, one := range b.attributes {
		if one.computed {
			return true
		}
	}
	for _, one := range b.blocks {
		if one.isComputed() {
			return true
		}
	}
	return false
}

// planNew returns the planned value of a new object: unset computed values are unknown. legacy is for schemas without
// the provider's defaults and generated blocks, as in protocol 5: all omitted values are then unknown.
func (b block) planNew(value cty.Value, legacy bool) cty.Value {
	return rewriteObject(value, func(name string, value cty.Value) cty.Value {
		if one, ok := b.attributes[name]; ok {
			switch {
			case one.writeOnly:
				return cty.NullVal(one.valueType())
			case value.IsNull() && (one.computed || one.optional && legacy):
				return cty.UnknownVal(one.valueType())
			case one.objects != nil:
				return one.objects.planAllNew(value, legacy)
			}
			return value
		}
		inner := b.blocks[name]
		if legacy && !inner.required && inner.isComputed() && isEmptyList(value) {
			return cty.UnknownVal(inner.repeated())
		}
		return inner.planAllNew(value, legacy)
	})
}

func isEmptyList(value cty.Value) bool {
	of := value.Type()
	return (of.IsListType() || of.IsSetType() || of.IsTupleType()) && !isUnset(value) && value.LengthInt() == 0
}

// planAllNew applies planNew to each object of a nested block.
func (n nested) planAllNew(value cty.Value, legacy bool) cty.Value {
	switch n.nesting {
	case nestingSingle, nestingGroup:
		return n.planNew(value, legacy)
	}
	if n.isDynamic() {
		return value
	}
	switch n.nesting {
	case nestingList, nestingSet:
		return rewriteList(value, func(_ int, value cty.Value) cty.Value { return n.planNew(value, legacy) })
	case nestingMap:
		return rewriteObject(value, func(_ string, value cty.Value) cty.Value { return n.planNew(value, legacy) })
	}
	return value
}
