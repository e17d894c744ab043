package credential

import (
	"errors"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"
)

// Limits of a document in a Secret. What signs in somewhere has a few lines.
const (
	// MaxDocument is the length of a document in bytes.
	MaxDocument = 256 << 10
	// MaxValues is how many values a document may have, each counted as often as aliases repeat it.
	MaxValues = 20_000
	// MaxDepth is how deep values may nest.
	MaxDepth = 64
)

// LimitError says that a document is beyond a limit. It quotes nothing of it.
type LimitError struct {
	// Problem says which limit, Fix what to change.
	Problem, Fix string
}

// Error implements error.
func (e *LimitError) Error() string { return e.Problem + "; " + e.Fix }

var errNoDocument = errors.New("neither YAML nor JSON")

// checkDocument refuses a document that would take much memory or time to read. Aliases are counted, not followed.
func checkDocument(document []byte) error {
	if len(document) > MaxDocument {
		return &LimitError{fmt.Sprintf("is longer than %d bytes", MaxDocument), "leave out what is not needed"}
	}
	var root yamlnode.Node
	if err := yamlnode.Unmarshal(document, &root); err != nil {
		return errNoDocument
	}
	_, err := (&counter{counted: map[*yamlnode.Node]int{}}).values(&root, 0)
	return err
}

// counter counts the values of a document.
type counter struct {
	// counted has what values with aliases hold; 0 while one is counted.
	counted map[*yamlnode.Node]int
}

func (c *counter) values(node *yamlnode.Node, depth int) (int, error) {
	if depth > MaxDepth {
		return 0, &LimitError{fmt.Sprintf("nests deeper than %d levels", MaxDepth), "write it flatter"}
	}
	if node.Kind == yamlnode.AliasNode {
		node = node.Alias
	}
	if known, seen := c.counted[node]; seen && known == 0 {
		return 0, &LimitError{"has an alias of itself", "write the value out"}
	} else if seen {
		return known, nil
	}
	if node.Anchor != "" {
		c.counted[node] = 0
	}
	count := 1
	for _, inner := range node.Content {
		more, err := c.values(inner, depth+1)
		if err != nil {
			return 0, err
		}
		if count += more; count > MaxValues {
			return 0, &LimitError{fmt.Sprintf("holds more than %d values", MaxValues), "leave out what is not needed, and write aliases out"}
		}
	}
	if node.Anchor != "" {
		c.counted[node] = count
	}
	return count, nil
}
