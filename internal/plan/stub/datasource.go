package stub

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
)

// DataSource is what a state has of one data source: its type, and the attributes that it last had, as JSON.
type DataSource struct {
	Type       string
	Attributes json.RawMessage
}

// matches reports whether a data source with the arguments in config last had these attributes: each argument that is given is among them.
func (d DataSource) matches(kind string, config []byte) bool {
	if kind != d.Type {
		return false
	}
	wanted, rest, err := unpack(config)
	if err != nil || len(rest) > 0 {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(string(d.Attributes)))
	decoder.UseNumber()
	var values any
	return decoder.Decode(&values) == nil && covers(values, wanted)
}

// covers reports whether a value has all that is given. Providers of the older SDK keep null for what is given as empty.
func covers(value, given any) bool {
	if value == nil {
		return empty(given)
	}
	switch given := given.(type) {
	case nil:
		return true
	case map[string]any:
		object, ok := value.(map[string]any)
		for name, inner := range given {
			ok = ok && covers(object[name], inner)
		}
		return ok
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(given) {
			return false
		}
		for n := range given {
			if !covers(list[n], given[n]) {
				return false
			}
		}
		return true
	case *big.Float:
		number, ok := value.(json.Number)
		if !ok {
			return false
		}
		parsed, ok := new(big.Float).SetPrec(given.Prec()).SetString(number.String())
		return ok && parsed.Cmp(given) == 0
	}
	return value == given
}

// empty reports whether the older SDK takes a value for null.
func empty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(value)), func(inner any) bool { return !empty(inner) })
	case []any:
		return len(value) == 0
	case *big.Float:
		return value.Sign() == 0
	}
	return value == nil || value == "" || value == false
}

// integerBits is enough for each integer that has a size of its own in MessagePack. Those of floats are rounded as floats are.
const integerBits = 64

// unpack returns the first value of b as JSON decodes it, with numbers as big.Float, and what comes after it. What is unknown, or has no
// such form, is an error.
func unpack(b []byte) (value any, rest []byte, err error) {
	s, err := shapeOf(b)
	if err != nil {
		return nil, nil, err
	}
	raw, rest, err := cutValue(b)
	if err != nil {
		return nil, nil, err
	}
	content := raw[s.header:]
	switch first := raw[0]; {
	case s.object:
		value, err = unpackObject(content, s.items/2)
	case s.list:
		value, err = unpackList(content, s.items)
	case first == 0xc0:
	case first == 0xc2, first == 0xc3:
		value = first == 0xc3
	case first <= 0x7f:
		value = integer(int64(first))
	case first >= 0xe0:
		value = integer(int64(int8(first)))
	case first >= 0xca && first <= 0xd3:
		value = unpackNumber(first, content)
	default:
		value, err = textOf(raw)
	}
	return value, rest, err
}

func unpackObject(content []byte, size int) (any, error) {
	object := map[string]any{}
	for range size {
		key, rest, err := cutValue(content)
		if err != nil {
			return nil, err
		}
		name, err := textOf(key)
		if err != nil {
			return nil, err
		}
		if object[name], content, err = unpack(rest); err != nil {
			return nil, err
		}
	}
	return object, nil
}

func unpackList(content []byte, size int) (any, error) {
	list := []any{}
	for range size {
		value, rest, err := unpack(content)
		if err != nil {
			return nil, err
		}
		list, content = append(list, value), rest
	}
	return list, nil
}

// unpackNumber reads a number of a fixed size.
func unpackNumber(first byte, content []byte) any {
	var padded [8]byte
	copy(padded[8-len(content):], content)
	bits := binary.BigEndian.Uint64(padded[:])
	switch first {
	case 0xca:
		return new(big.Float).SetPrec(24).SetFloat64(float64(math.Float32frombits(uint32(bits))))
	case 0xcb:
		if float := math.Float64frombits(bits); !math.IsNaN(float) {
			return new(big.Float).SetPrec(53).SetFloat64(float)
		}
		return fmt.Sprint(bits)
	case 0xcc, 0xcd, 0xce, 0xcf:
		return new(big.Float).SetPrec(integerBits).SetUint64(bits)
	}
	shift := 64 - 8*len(content)
	return integer(int64(bits<<shift) >> shift)
}

func integer(value int64) *big.Float { return new(big.Float).SetPrec(integerBits).SetInt64(value) }
