package stub

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of the plugin protocol are read field by field: what is needed of them has the same numbers in protocol 5 and 6, and is
// frozen there; docs/adr/0007-pass-the-plugin-protocol-on-as-it-is.md has the reasons.

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

// Ways in which a block or the objects of an attribute are repeated.
const (
	nestingSingle = 1
	nestingList   = 2
	nestingSet    = 3
	nestingMap    = 4
	nestingGroup  = 5
)

// Block is what a stub provider needs of a block of a schema, or of the objects that an attribute holds.
type Block struct {
	attributes map[string]attribute
	blocks     map[string]nested
}

type attribute struct {
	optional, computed, writeOnly bool
	// objects is nil where the value is one of a plain type.
	objects *nested
	// kind is the type of another value; a dynamic one carries its type with it.
	kind cty.Type
}

// nested is a block in a block.
type nested struct {
	Block
	nesting  uint64
	required bool
}

// eachField calls visit for each field of a message.
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

// appendField appends a field whose content is text, bytes or a message.
func appendField(message []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), content)
}

// Narrow returns a provider's schemas without the resources and data sources that a module does not use: an engine reads them anew
// in every process, and those of a large cloud are tens of megabytes. legacy is for protocol 5.
func Narrow(response []byte, legacy bool, uses func(kind string) bool) ([]byte, error) {
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

// openOptional returns the schema of a data source with each optional attribute computed as well. Many providers fill in such an attribute
// when they read the data source, without a word in the schema; the engine would take it for null.
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

// rewriteField returns a message with each field of the number replaced by what change returns.
func rewriteField(message []byte, wanted protowire.Number, change func(content []byte) ([]byte, error)) ([]byte, error) {
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

// failureIn returns the error of a diagnostic; nil for a warning.
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

// entryOf reads an entry of a map.
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

// schemasIn reads the schemas of resources, or of data sources: those in fields of a number.
func schemasIn(response []byte, field protowire.Number) (map[string]Block, error) {
	found := map[string]Block{}
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

// readBlock reads a Schema.Block.
func readBlock(message []byte) (Block, error) {
	read := Block{attributes: map[string]attribute{}, blocks: map[string]nested{}}
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

// addAttribute reads a Schema.Attribute. An attribute is write-only by field 10 in protocol 5, by field 11 in protocol 6; the former is a
// number, the latter's field 10 a message.
func (b *Block) addAttribute(message []byte) error {
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
	read := &nested{Block: Block{attributes: map[string]attribute{}}}
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
func (b *Block) addBlock(message []byte) error {
	var name string
	var read nested
	err := eachField(message, func(number protowire.Number, varint uint64, content []byte) (err error) {
		switch number {
		case 1:
			name = string(content)
		case 2:
			read.Block, err = readBlock(content)
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

// isDynamic reports whether some value in the block carries its type with it. Lists of such blocks are written in another form.
func (b Block) isDynamic() bool {
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

// isComputed reports whether some value in the block is left to the provider.
func (b Block) isComputed() bool {
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

// planNew returns the planned value of a new object: what the provider computes and the configuration does not set is unknown. legacy is for
// schemas without the provider's defaults and the blocks that it makes by itself, as all of protocol 5 are: what the configuration leaves
// out is unknown then, too.
func (b Block) planNew(value cty.Value, legacy bool) cty.Value {
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

// isEmptyList reports whether a value is a list or set without elements.
func isEmptyList(value cty.Value) bool {
	of := value.Type()
	return (of.IsListType() || of.IsSetType() || of.IsTupleType()) && !isUnset(value) && value.LengthInt() == 0
}

// planAllNew does so for each object of a nested block.
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
