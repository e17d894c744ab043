package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/yaml"
)

// ScalarIn returns the string, number or bool at a path of a YAML or JSON document, as text, or "".
// It returns a [*LimitError] if the document is too large. Errors contain nothing of the document.
func scalarIn(document []byte, path []string) (string, error) {
	value, err := read(document, yaml.YAMLToJSON)
	if err != nil {
		return "", err
	}
	return scalarAt(value, path...), nil
}

// read decodes a document within the limits, with numbers as json.Number.
func read(document []byte, toJSON func([]byte) ([]byte, error)) (any, error) {
	if err := checkDocument(document); err != nil {
		return nil, err
	}
	converted, err := toJSON(document)
	if err != nil {
		return nil, errNoDocument
	}
	decoder := json.NewDecoder(bytes.NewReader(converted))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return nil, errNoDocument
	}
	return value, nil
}

// ScalarAt is ScalarIn for a decoded value with numbers as json.Number. Steps are names in objects,
// and indices in lists from "0".
func scalarAt(value any, path ...string) string {
	for _, step := range path {
		switch part := value.(type) {
		case map[string]any:
			value = part[step]
		case []any:
			position, err := strconv.Atoi(step)
			if err != nil || position < 0 || position >= len(part) {
				return ""
			}
			value = part[position]
		default:
			return ""
		}
	}
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	case bool:
		return fmt.Sprint(value)
	}
	return ""
}
