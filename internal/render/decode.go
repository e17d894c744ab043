package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/zclconf/go-cty/cty"
)

// valuePath is the path of the providerSpec in a Machine.
const valuePath = "spec.providerSpec.value"

// Bounds of a providerSpec.
const (
	// maxSize bounds its JSON in bytes.
	maxSize = 3 << 20
	// maxValues bounds its fields and list entries at all depths.
	maxValues       = 5_000
	maxDepth        = 64
	maxNumberLength = 150
	maxExponent     = 308
)

// A providerSpec is decoded to map[string]any, []any, string, json.Number, bool and nil.
// encoding/json alone would round numbers and silently drop duplicate keys.

// decodedBefore caches decoded providerSpecs.
var decodedBefore decodedSpecs

// decodeProviderSpec returns the fields of the embedded object, including apiVersion, kind and
// metadata.
func decodeProviderSpec(machine *machinev1beta1.Machine) (map[string]any, *FieldError) {
	if machine.Spec.ProviderSpec.Value == nil || len(bytes.TrimSpace(machine.Spec.ProviderSpec.Value.Raw)) == 0 {
		return nil, &FieldError{Path: valuePath, Fault: Missing, Problem: "an object is required, but it is missing",
			Fix: "write the providerSpec of a provider module"}
	}
	if size := len(machine.Spec.ProviderSpec.Value.Raw); size > maxSize {
		return nil, &FieldError{Path: valuePath, Problem: fmt.Sprintf("it has at most %d bytes, but these are %d",
			maxSize, size), Fix: "leave out what the instance does not need"}
	}
	if fields := decodedBefore.get(machine.Spec.ProviderSpec.Value.Raw); fields != nil {
		return fields, nil
	}
	decoder := &specDecoder{Decoder: json.NewDecoder(bytes.NewReader(machine.Spec.ProviderSpec.Value.Raw))}
	decoder.UseNumber()
	value, failed := decodeNext(decoder, valuePath, 0)
	if failed != nil {
		return nil, failed
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &FieldError{Path: valuePath, Problem: "there is more than one JSON value", Fix: "keep one object"}
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, &FieldError{Path: valuePath, Problem: "an object is required, but it is " + nameOf(value),
			Fix: "write the providerSpec of a provider module"}
	}
	return decodedBefore.add(machine.Spec.ProviderSpec.Value.Raw, fields), nil
}

// specDecoder counts the values that it decodes.
type specDecoder struct {
	*json.Decoder
	values int
}

func decodeNext(decoder *specDecoder, path string, depth int) (any, *FieldError) {
	token, err := decoder.Token()
	if err != nil {
		return nil, syntaxError(path, err)
	}
	if decoder.values++; decoder.values > maxValues {
		return nil, &FieldError{Path: path,
			Problem: fmt.Sprintf("a providerSpec holds at most %d values, but this one holds more",
				maxValues), Fix: "write shorter lists"}
	}
	switch token := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, &FieldError{Path: path, Problem: fmt.Sprintf("it nests deeper than %d levels", maxDepth),
				Fix: "write it flatter"}
		}
		if token == '{' {
			return decodeObject(decoder, path, depth+1)
		}
		return decodeList(decoder, path, depth+1)
	case json.Number:
		return token, checkNumber(path, token)
	default:
		return token, nil
	}
}

func decodeObject(decoder *specDecoder, path string, depth int) (any, *FieldError) {
	fields := map[string]any{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, syntaxError(path, err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, syntaxError(path, fmt.Errorf("unexpected %v", token))
		}
		// The engine normalises equivalent encodings of a character.
		name = cty.NormalizeString(name)
		at := fieldPath(path, name)
		if _, twice := fields[name]; twice {
			return nil, &FieldError{Path: at, Problem: "it is given twice", Fix: "keep one"}
		}
		value, failed := decodeNext(decoder, at, depth)
		if failed != nil {
			return nil, failed
		}
		fields[name] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, syntaxError(path, err)
	}
	return fields, nil
}

func decodeList(decoder *specDecoder, path string, depth int) (any, *FieldError) {
	items := []any{}
	for decoder.More() {
		item, failed := decodeNext(decoder, indexPath(path, len(items)), depth)
		if failed != nil {
			return nil, failed
		}
		items = append(items, item)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, syntaxError(path, err)
	}
	return items, nil
}

func syntaxError(path string, err error) *FieldError {
	return &FieldError{Path: path, Problem: "it is not valid JSON: " + strings.Join(strings.Fields(err.Error()), " ")}
}

// checkNumber rejects numbers that the engine cannot represent exactly: it has 512 bits.
func checkNumber(path string, number json.Number) *FieldError {
	text := number.String()
	exponent := 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		parsed, err := strconv.Atoi(text[at+1:])
		if err != nil {
			parsed = maxExponent + 1
		}
		exponent = max(parsed, -parsed)
	}
	if len(text) <= maxNumberLength && exponent <= maxExponent {
		return nil
	}
	return &FieldError{
		Path: path, Value: shorten(text), Fix: "write a shorter number, or a string",
		Problem: fmt.Sprintf("a number has at most %d digits and an exponent of at most %d, but this one has more",
			maxNumberLength, maxExponent),
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// fieldPath returns the path of a field. It quotes names that would not read as a step.
func fieldPath(path, name string) string {
	if plainName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + strconv.Quote(shorten(name)) + "]"
}

func indexPath(path string, index int) string {
	return path + "[" + strconv.Itoa(index) + "]"
}

// shorten truncates a text for a message.
func shorten(text string) string {
	const limit = 64
	if runes := []rune(text[:min(len(text), 4*limit+4)]); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}

// nameOf returns the kind of a decoded value, with an article.
func nameOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case json.Number:
		return "a number"
	default:
		return "a bool"
	}
}
