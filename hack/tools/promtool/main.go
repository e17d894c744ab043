// promql-selectors prints what queries read: for each query in the JSON list of strings on standard input, the series that it selects with
// their matchers, the labels that it groups or joins by, and those that it adds. Prometheus's own parser reads the queries.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

// query is what one query reads.
type query struct {
	Series []series `json:"series"`
	// Labels are those that results are grouped or joined by.
	Labels []string `json:"labels,omitempty"`
	// Added are those that the query gives its results itself.
	Added []string `json:"added,omitempty"`
}

type series struct {
	Name     string    `json:"name"`
	Matchers []matcher `json:"matchers,omitempty"`
}

type matcher struct {
	Label string `json:"label"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "promql-selectors:", err)
		os.Exit(1)
	}
}

func run() error {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return fmt.Errorf("reading the list of queries from standard input: %w", err)
	}
	with := parser.NewParser(parser.Options{})
	read := make([]query, 0, len(texts))
	for _, text := range texts {
		expression, err := with.ParseExpr(text)
		if err != nil {
			return fmt.Errorf("parsing %q: %w", text, err)
		}
		read = append(read, reads(expression))
	}
	return json.NewEncoder(os.Stdout).Encode(read)
}

func reads(expression parser.Expr) query {
	found := query{Series: []series{}}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			found.Series = append(found.Series, selected(node))
		case *parser.AggregateExpr:
			if !node.Without {
				found.Labels = append(found.Labels, node.Grouping...)
			}
		case *parser.BinaryExpr:
			if on := node.VectorMatching; on != nil && on.On {
				found.Labels = append(found.Labels, on.MatchingLabels...)
			}
		case *parser.Call:
			if name, ok := added(node); ok {
				found.Added = append(found.Added, name)
			}
		}
		return nil
	})
	return found
}

func selected(node *parser.VectorSelector) series {
	one := series{Name: node.Name}
	for _, m := range node.LabelMatchers {
		if m.Name == "__name__" {
			continue
		}
		one.Matchers = append(one.Matchers, matcher{Label: m.Name, Type: m.Type.String(), Value: m.Value})
	}
	return one
}

// added returns the label that a function adds.
func added(call *parser.Call) (string, bool) {
	if call.Func.Name != "label_replace" && call.Func.Name != "label_join" {
		return "", false
	}
	name, ok := call.Args[1].(*parser.StringLiteral)
	if !ok {
		return "", false
	}
	return name.Val, true
}
