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
	// minSensitive is the shortest string that is held for a secret. Shorter ones ("1", "yes") occur everywhere: replacing them
	// would hide the message and name the value.
	minSensitive = 4
	// minLeaf is the same for a value in a document whose name does not say that it is secret.
	minLeaf = 6
	// minSensitiveLine is the same for one line of a longer text, where short lines are mostly syntax.
	minSensitiveLine = 8
	// minEncoded is the shortest text that is held for base64 of another.
	minEncoded = 12
	// maxParts bounds the parts of all secrets, maxDocument the documents that are read, and maxDepth how deep they are in each other.
	maxParts    = 1 << 12
	maxDocument = 2 << 20
	maxDepth    = 4
)

// plainWords are no secrets wherever they are: texts without them could not be read.
var plainWords = wordsIn(`true false null none nil yes no on off default root admin administrator user users core ubuntu debian centos fedora
	rocky almalinux alpine cloud-user ec2-user enabled disabled enable disable present absent latest stable always never required optional
	kubernetes kubelet systemd container docker containerd podman localhost machine machines worker workers master control-plane node nodes
	linux amd64 arm64 x86_64 http https service service_account simple static dynamic public private internal external basic password token
	secret string object number boolean 127.0.0.1 0.0.0.0 /bin/sh /bin/bash bash utf-8 base64 text/plain application/json 2.2.0 3.2.0 3.4.0`)

// openNames are names of fields whose values say where and what something is. Errors cannot be understood without them.
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
	// fieldLine matches a line with one field, in YAML, JSON, INI or as a shell writes it.
	fieldLine = regexp.MustCompile(`^[\s{\[,-]*(?:export\s+)?["']?([A-Za-z_][\w.@/ -]{0,63}?)["']?(?:\s*=\s*|\s*:(?:\s+|["'])|["']\s*:)["']?(.*?)["']?[\s,}\]]*$`)
)

// collector finds what is secret in secrets.
type collector struct {
	found []string
	seen  map[string]bool
	// full says that there was more than is searched for, structured that a secret was a document.
	full, structured bool
}

// whole adds a secret, and what is in it.
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

// leaf adds the value of a field, where it may be secret, and what is in it.
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

// plainName is the name of a field without what styles differ in.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// inside adds what is secret in a text: the fields of a document, lines, passwords in addresses, and the same of what it encodes.
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

// document adds the strings in documents of YAML or JSON. JSON is read as YAML too, which keeps each of two fields of one name.
func (c *collector) document(text string, depth int) {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		c.value("", value, depth)
	}
	decoder := yamlnode.NewDecoder(strings.NewReader(text))
	for {
		var root yamlnode.Node
		if err := decoder.Decode(&root); err != nil {
			return // at the end, or no YAML: then there are still its lines
		}
		if len(root.Content) == 1 && root.Content[0].Kind != yamlnode.ScalarNode {
			c.structured = true
			c.node("", root.Content[0], depth)
		}
	}
}

// node adds what is below a node. Aliases lead to what is added anyway.
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

// value adds what is in a value of JSON.
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

// isScalarOfOtherType reports whether a text is a number or the like in YAML.
func isScalarOfOtherType(text string) bool {
	var node yamlnode.Node
	return len(text) <= 32 && yamlnode.Unmarshal([]byte(text), &node) == nil && len(node.Content) == 1 &&
		node.Content[0].Kind == yamlnode.ScalarNode && node.Content[0].ShortTag() != "!!str"
}

// decoded returns the text that another is base64, a data URL or the compressed form of; none where it is of nothing readable.
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

// readable returns what people may read of bytes, decompressed where they are gzip; none where they are no text.
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
	if len(raw) < minLeaf || !utf8.Valid(raw) || bytes.ContainsFunc(raw, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return ""
	}
	return string(raw)
}
