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

// maxDocument is the maximum size of a document in a Secret, in bytes. Credentials have a few lines.
const maxDocument = 256 << 10

// Errors of documents. They contain nothing of a document.
var (
	errNoDocument   = errors.New("is neither YAML nor JSON")
	errLongDocument = fmt.Errorf("is longer than %d bytes", maxDocument)
)

// scalarIn returns the string, number or bool at a path of a YAML or JSON document, as text, or "".
func scalarIn(document []byte, path []string) (string, error) {
	value, err := read(document, yaml.YAMLToJSON)
	if err != nil {
		return "", err
	}
	return scalarAt(value, path...), nil
}

// read decodes a document, with numbers as json.Number. The YAML library rejects documents whose
// aliases stand for many times their size.
func read(document []byte, toJSON func([]byte) ([]byte, error)) (any, error) {
	if len(document) > maxDocument {
		return nil, errLongDocument
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

// scalarAt is scalarIn for a decoded value with numbers as json.Number. Steps are names in objects,
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
