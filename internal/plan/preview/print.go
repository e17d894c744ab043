package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Formats maps output formats to their purpose. The empty format is for people.
var Formats = map[string]string{
	"":         "for people",
	"json":     "for machines",
	"markdown": "for pull requests",
	"yaml":     "for machines",
}

// Print prints the preview in one of Formats. Only the empty format uses colours.
func Print(out io.Writer, p *Preview, format string, colours bool) error {
	var text []byte
	var err error
	switch format {
	case "":
		text = people(p, colours)
	case "markdown":
		text = markdown(p)
	case "json":
		text, err = encode(p)
	case "yaml":
		if text, err = encode(p); err == nil {
			text, err = yaml.JSONToYAML(text)
		}
	default:
		err = fmt.Errorf("the format %q is not known", format)
	}
	if err != nil {
		return fmt.Errorf("printing the preview: %w", err)
	}
	_, err = out.Write(text)
	return err
}

func encode(p *Preview) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(p)
	return text.Bytes(), err
}
