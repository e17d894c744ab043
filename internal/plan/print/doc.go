// Package print prints a preview: as text for people, as Markdown for pull requests, and as JSON or YAML.
package print
