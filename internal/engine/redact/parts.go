package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
)

const (
	// minSensitive is the minimum length of a secret. Shorter ones ("1", "yes") occur everywhere:
	// replacing them would hide the message and reveal the value.
	minSensitive = 4
	// minLeaf is the minimum length of a value in a document whose name does not say that it is
	// secret.
	minLeaf = 6
	// minSensitiveLine is the minimum length of a line of a longer text, where short lines are mostly
	// syntax.
	minSensitiveLine = 8
	// minEncoded is the minimum length of text that may be base64.
	minEncoded = 12
	// maxParts limits the parts of all secrets, maxDocument the size of documents that are parsed, and
	// maxDepth their nesting.
	maxParts    = 1 << 12
	maxDocument = 2 << 20
	maxDepth    = 4
)

// plainWords are never secrets: texts would be unreadable without them.
var plainWords = wordsIn(`true false null none nil yes no on off default root admin administrator user users core ubuntu debian centos fedora
	rocky almalinux alpine cloud-user ec2-user enabled disabled enable disable present absent latest stable always never required optional
	kubernetes kubelet systemd container docker containerd podman localhost machine machines worker workers master control-plane node nodes
	linux amd64 arm64 x86_64 http https service service_account simple static dynamic public private internal external basic password token
	secret string object number boolean 127.0.0.1 0.0.0.0 /bin/sh /bin/bash bash utf-8 base64 text/plain application/json 2.2.0 3.2.0 3.4.0`)

// openNames are names of fields whose values say where and what something is. Errors cannot be
// understood without them.
var openNames = wordsIn(`project projectid projectname projectdomainname userdomainname region regionname zone availabilityzone type kind
	apiversion version authurl authuri tokenuri authproviderx509certurl universedomain interface endpointtype identityapiversion
	osauthurl osregionname osprojectname cacert cafile cacertfile`)

func wordsIn(text string) map[string]bool {
	found := map[string]bool{}
	for _, word := range strings.Fields(text) {
		found[word] = true
	}
	return found
}

var (
	// secretName matches names of fields whose values are secret whatever they look like.
	secretName = regexp.MustCompile(`(?i)pass|token|secret|private|credential|api_?key|access_?key`)
	// fieldLine matches a line with one field, in YAML, JSON, INI or shell syntax.
	fieldLine = regexp.MustCompile(`^[\s{\[,-]*(?:export\s+)?["']?([A-Za-z_][\w.@/ -]{0,63}?)["']?(?:\s*=\s*|\s*:(?:\s+|["'])|["']\s*:)["']?(.*?)["']?[\s,}\]]*$`)
)

// collector finds the secret parts of secrets.
type collector struct {
	found []string
	seen  map[string]bool
	// full means that there were more parts than are searched for; structured means that a secret was
	// a document.
	full, structured bool
}

// whole adds a secret and its parts.
func (c *collector) whole(secret string) {
	trimmed := strings.TrimSpace(secret)
	if len(trimmed) < minSensitive || plainWords[strings.ToLower(trimmed)] {
		return
	}
	c.add(secret)
	c.add(trimmed)
	c.inside(trimmed, 0)
}

func (c *collector) add(part string) {
	switch {
	case c.seen[part]:
	case len(c.found) >= maxParts:
		c.full = true
	default:
		c.seen[part] = true
		c.found = append(c.found, part)
	}
}

// leaf adds the value of a field, if it may be secret, and its parts.
func (c *collector) leaf(name, text string, isString bool, depth int) {
	text = strings.TrimSpace(text)
	named := secretName.MatchString(name)
	switch {
	case len(text) < minSensitive, plainWords[strings.ToLower(text)]:
		return
	case named:
	case !isString, len(text) < minLeaf, openNames[plainName(name)]:
		return
	}
	c.add(text)
	c.inside(text, depth+1)
}

// plainName returns the name of a field in lower case without separators.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// inside adds the secret parts of a text: fields of a document, lines, passwords in URLs, and the
// same for what it encodes.
func (c *collector) inside(text string, depth int) {
	if depth > maxDepth || len(text) > maxDocument {
		c.full = c.full || len(text) > maxDocument
		return
	}
	if address, err := url.Parse(text); err == nil && address.User != nil {
		if password, given := address.User.Password(); given && len(password) >= minSensitive {
			c.add(password)
		}
	}
	if plain := decoded(text); plain != "" {
		c.add(plain)
		c.inside(strings.TrimSpace(plain), depth+1)
	}
	lines := strings.Contains(text, "\n")
	if lines || strings.ContainsAny(text, "{[:") {
		c.document(text, depth)
	}
	if lines || strings.Contains(text, "=") {
		c.lines(text, depth)
	}
}

// lines adds the lines of a text, and the values of fields in them.
func (c *collector) lines(text string, depth int) {
	many := strings.Contains(text, "\n")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") {
			continue // the frame of a key or certificate
		}
		if many && len(line) >= minSensitiveLine {
			c.add(line)
		}
		if field := fieldLine.FindStringSubmatch(line); field != nil && field[2] != "" {
			c.structured = true
			c.leaf(field[1], field[2], !isScalarOfOtherType(field[2]), max(depth, maxDepth-1))
		}
	}
}

// document adds the strings in YAML or JSON documents. JSON is also parsed as YAML, which keeps
// duplicate fields.
func (c *collector) document(text string, depth int) {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		c.value("", value, depth)
	}
	decoder := yamlnode.NewDecoder(strings.NewReader(text))
	for {
		var root yamlnode.Node
		if err := decoder.Decode(&root); err != nil {
			return // at the end, or not YAML: the lines are added separately
		}
		if len(root.Content) == 1 && root.Content[0].Kind != yamlnode.ScalarNode {
			c.structured = true
			c.node("", root.Content[0], depth)
		}
	}
}

// node adds everything below a node. Targets of aliases are added anyway.
func (c *collector) node(name string, node *yamlnode.Node, depth int) {
	switch node.Kind {
	case yamlnode.ScalarNode:
		c.leaf(name, node.Value, node.ShortTag() == "!!str" || node.ShortTag() == "!!binary", depth)
	case yamlnode.SequenceNode:
		for _, one := range node.Content {
			c.node(name, one, depth)
		}
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			c.node(node.Content[i].Value, node.Content[i+1], depth)
		}
	}
}

// value adds everything in a JSON value.
func (c *collector) value(name string, value any, depth int) {
	switch value := value.(type) {
	case string:
		c.leaf(name, value, true, depth)
	case []any:
		for _, one := range value {
			c.value(name, one, depth)
		}
	case map[string]any:
		c.structured = true
		for key, one := range value {
			c.value(key, one, depth)
		}
	}
}

// isScalarOfOtherType reports whether a text is a number or similar in YAML.
func isScalarOfOtherType(text string) bool {
	var node yamlnode.Node
	return len(text) <= 32 && yamlnode.Unmarshal([]byte(text), &node) == nil && len(node.Content) == 1 &&
		node.Content[0].Kind == yamlnode.ScalarNode && node.Content[0].ShortTag() != "!!str"
}

// decoded returns the text that another text encodes in base64, as a data URL, or compressed. It
// returns "" if the result is not readable.
func decoded(text string) string {
	if rest, isData := strings.CutPrefix(text, "data:"); isData {
		kind, content, found := strings.Cut(rest, ",")
		if !found {
			return ""
		}
		plain, err := url.PathUnescape(content)
		if err != nil {
			return ""
		}
		if !strings.HasSuffix(kind, ";base64") {
			return readable([]byte(plain))
		}
		text = plain
	}
	if len(text) < minEncoded {
		return ""
	}
	joined := strings.TrimRight(strings.Join(strings.Fields(text), ""), "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if raw, err := encoding.DecodeString(joined); err == nil {
			return readable(raw)
		}
	}
	return ""
}

// readable returns bytes as text, decompressed if they are gzip. It returns "" if they are not
// text.
func readable(raw []byte) string {
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		reader, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return ""
		}
		if raw, err = io.ReadAll(io.LimitReader(reader, maxDocument)); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return ""
		}
	}
	if len(raw) < minLeaf || !utf8.Valid(raw) ||
		bytes.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	return string(raw)
}
