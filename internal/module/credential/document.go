package credential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/yaml"
)

// ScalarIn returns the text, number or bool at a path of a document in YAML or JSON, as text; "" where there is none. Errors show nothing of it.
func ScalarIn(document []byte, path []string) (string, error) {
	converted, err := yaml.YAMLToJSON(document)
	if err != nil {
		return "", errors.New("neither YAML nor JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(converted))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return "", errors.New("neither YAML nor JSON")
	}
	return ScalarAt(value, path...), nil
}

// ScalarAt returns the same of a value that is decoded, with numbers as json.Number. Steps are names in objects, and positions in lists from "0".
func ScalarAt(value any, path ...string) string {
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
