package pulumi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// secureKey marks encrypted values in Pulumi's configuration: a map with only this key. Such a map
// cannot be written in any other way.
const secureKey = "secure"

// checkReserved rejects a value that Pulumi would take for an encrypted one. The error names it.
func checkReserved(variables []byte) error {
	var values map[string]any
	if json.Unmarshal(variables, &values) != nil {
		return nil // reported where the variables are used
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if path := reservedIn(name, values[name]); path != "" {
			return fmt.Errorf("%s: a map whose only key is %q cannot be passed to Pulumi, which takes it for an encrypted value; "+
				"use another key, or add one", path, secureKey)
		}
	}
	return nil
}

// reservedIn returns the path of the first such map, or "".
func reservedIn(path string, value any) string {
	switch value := value.(type) {
	case map[string]any:
		if _, text := value[secureKey].(string); text && len(value) == 1 {
			return path
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if found := reservedIn(path+"."+key, value[key]); found != "" {
				return found
			}
		}
	case []any:
		for i, item := range value {
			if found := reservedIn(path+"["+strconv.Itoa(i)+"]", item); found != "" {
				return found
			}
		}
	}
	return ""
}
