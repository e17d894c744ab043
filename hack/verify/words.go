package verify

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// word is one that comments, strings and docs do not use, since an engineer who knows Kubernetes, Terraform and Pulumi would not understand it
// at once.
type word struct {
	// pattern is a regular expression for whole words, in lower case.
	pattern string
	// instead lists what to write.
	instead string
}

// words are those that were replaced once and do not come back.
var words = []word{
	{"mend(s|ed|ing)?", "fix"},
	{"tell(s|ing)?|told", "report, show, say, return"},
	{"answer(s|ed|ing)?", "return, respond, response"},
	{"look again", "requeueAfter"},
	{"overtaken", "stale, conflict"},
	{"await(s|ed|ing)?", "wait for, in progress"},
	{"desire|desires|desire (own|last|blindly)", "render, desired state, pinned module, last applied"},
	{"surroundings", "environment of a run"},
	{"outlooks?|prospects?", "plan preview"},
	{"blam(e|es|ed|ing)", "explain"},
	{"existence|upkeep|farewell|destruction", "check exists, update, begin delete, delete"},
	{"imprints?|wish|wishes", "node metadata, desired labels and taints"},
	{"notices?|sayings", "event"},
	{"judg(e|es|ed|ing|ements?|ments?)", "check, review, admission result"},
	{"verdicts?", "drift result, health result, admission result"},
	{"ledgers?|fates?", "eviction tracker, outcome"},
	{"gates?|doors?", "lock, semaphore"},
	{"stand[- ]ins?|stands? in for", "stub provider"},
	{"impostors?", "stub binary"},
	{"furnish(es|ed|ing)?", "populate"},
	{"fores(ee|ees|een)", "planned values"},
	{"sick", "unhealthy"},
	{"hollow (nodes?|machines?|instances?)", "simulated"},
	{"deeds?", "action, step"},
	{"chronicles?", "log, timeline"},
}

// exception is a use of a word that stays.
type exception struct {
	pattern, reason string
}

var exceptions = []exception{
	{`scheduling gates?`, "Kubernetes' name for what holds a Pod back from the scheduler"},
	{`feature gates?|[Ff]eatureGates?`, "Kubernetes' and OpenShift's name for what turns a feature on"},
	{"`verdict`|`mend`|`VERDICT`", "names that fields of the output had, in the changelog"},
	{`"gate":`, "the key of a Pod in a manifest"},
	{`timeout awaiting response headers`, "an error of net/http, which engines print"},
}

var (
	forbidden = regexp.MustCompile(`\b(?:` + alternatives(words) + `)\b`)
	excepted  = regexp.MustCompile(exceptionPattern(exceptions))
	humps     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

func alternatives(words []word) string {
	patterns := make([]string, 0, len(words))
	for _, w := range words {
		patterns = append(patterns, w.pattern)
	}
	return strings.Join(patterns, "|")
}

func exceptionPattern(exceptions []exception) string {
	patterns := make([]string, 0, len(exceptions))
	for _, e := range exceptions {
		patterns = append(patterns, e.pattern)
	}
	return strings.Join(patterns, "|")
}

// passage is a text, and the line on which it begins.
type passage struct {
	line int
	text string
}

// problems returns a message for every use of a word in a passage. Names in camel case are read as the words that they consist of.
func (p passage) problems(file string) []string {
	var out []string
	for at, line := range strings.Split(p.text, "\n") {
		if !forbidden.MatchString(wordsOf(line)) {
			continue // most lines end here
		}
		for _, found := range forbidden.FindAllString(wordsOf(excepted.ReplaceAllString(line, "")), -1) {
			out = append(out, fmt.Sprintf("%s:%d: %q: write %s", file, p.line+at, found, insteadOf(found)))
		}
	}
	return out
}

// wordsOf returns a text in lower case, with its names in camel case taken apart.
func wordsOf(text string) string { return strings.ToLower(humps.ReplaceAllString(text, "$1 $2")) }

func insteadOf(found string) string {
	for _, w := range words {
		if regexp.MustCompile(`^(?:` + w.pattern + `)$`).MatchString(found) {
			return w.instead
		}
	}
	return "another word"
}

// passages returns what people read of a file: comments and strings of Go, and all of documents, HCL, YAML and scripts. Import paths and
// struct tags are names that stay.
func passages(file string, content []byte) ([]passage, error) {
	switch path.Ext(file) {
	case ".go":
		return passagesOfGo(file, content)
	case ".md", ".tf", ".hcl", ".yaml", ".sh", ".tmpl":
		return []passage{{line: 1, text: string(content)}}, nil
	}
	return nil, nil
}

func passagesOfGo(file string, content []byte) ([]passage, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []passage
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			out = append(out, passage{files.Position(comment.Pos()).Line, comment.Text})
		}
	}
	skipped := map[*ast.BasicLit]bool{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			skipped[node.Tag] = true
		case *ast.BasicLit:
			if node.Kind == token.STRING && !skipped[node] {
				out = append(out, passage{files.Position(node.Pos()).Line, unquoted(node.Value)})
			}
		}
		return true
	})
	return out, nil
}

// unquoted returns the value of a literal on as many lines as the source has.
func unquoted(literal string) string {
	value, err := strconv.Unquote(literal)
	if err != nil || literal[0] == '`' {
		return literal
	}
	return strings.ReplaceAll(value, "\n", " ")
}
