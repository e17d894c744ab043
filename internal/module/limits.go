package module

import (
	"errors"
	"fmt"

	yamlnode "go.yaml.in/yaml/v3"
)

// Limits of a document in a Secret. Credentials have a few lines.
const (
	// MaxDocument is the maximum size of a document in bytes.
	maxDocument = 256 << 10
	// MaxValues is the maximum number of values in a document, including repetitions through aliases.
	maxValues = 20_000
	// MaxDepth is the maximum nesting of values.
	maxDepth = 64
)

// LimitError means that a document exceeds a limit. It quotes nothing of it.
type limitError struct {
	// Problem is the limit, and Fix how to meet it.
	Problem, Fix string
}

// Error implements error.
func (e *limitError) Error() string { return e.Problem + "; " + e.Fix }

var errNoDocument = errors.New("neither YAML nor JSON")

// checkDocument rejects a document that would take too much memory or time. It counts aliases
// without following them.
func checkDocument(document []byte) error {
	if len(document) > maxDocument {
		return &limitError{fmt.Sprintf("is longer than %d bytes", maxDocument), "remove what is not needed"}
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
	// counted is the number of values below a node with aliases; 0 while it is being counted.
	counted map[*yamlnode.Node]int
}

func (c *counter) values(node *yamlnode.Node, depth int) (int, error) {
	if depth > maxDepth {
		return 0, &limitError{fmt.Sprintf("nests deeper than %d levels", maxDepth), "reduce the nesting"}
	}
	if node.Kind == yamlnode.AliasNode {
		node = node.Alias
	}
	if known, seen := c.counted[node]; seen && known == 0 {
		return 0, &limitError{"contains a recursive alias", "write the value out"}
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
		if count += more; count > maxValues {
			return 0, &limitError{fmt.Sprintf("contains more than %d values", maxValues), "remove what is not needed, and replace aliases by their values"}
		}
	}
	if node.Anchor != "" {
		c.counted[node] = count
	}
	return count, nil
}
