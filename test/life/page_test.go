//go:build life

package life

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	beginning = "<!-- make life writes from here -->\n"
	ending    = "<!-- to here -->\n"
)

// page is the table of docs/platforms.md: what was written by earlier runs, and what this one adds.
type page struct {
	before, after string
	// cells are by row and platform, reasons by platform and step.
	cells   map[string]map[string]string
	reasons map[string]string
}

func pagePath() string { return filepath.Join(root, "docs", "platforms.md") }

// heads are the rows above the steps.
var heads = []string{"provider", "infrastructure"}

func readPage() (*page, error) {
	content, err := os.ReadFile(pagePath())
	if err != nil {
		return nil, err
	}
	before, rest, begins := strings.Cut(string(content), beginning)
	table, after, ends := strings.Cut(rest, ending)
	if !begins || !ends {
		return nil, errors.New("docs/platforms.md has no markers of make life")
	}
	p := &page{before: before, after: after, cells: map[string]map[string]string{}, reasons: map[string]string{}}
	var columns []string
	for line := range strings.Lines(table) {
		if reason, ok := strings.CutPrefix(line, "- "); ok {
			name, why, _ := strings.Cut(strings.TrimSpace(reason), ": ")
			p.reasons[name] = why
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2 || strings.HasPrefix(cells[0], "---"):
		case columns == nil:
			columns = cells
		default:
			for i, cell := range cells[1:] {
				p.set(cells[0], columns[i+1], cell)
			}
		}
	}
	return p, nil
}

func (p *page) set(row, column, cell string) {
	if p.cells[row] == nil {
		p.cells[row] = map[string]string{}
	}
	p.cells[row][column] = cell
}

// lives notes with what a platform runs.
func (p *page) lives(on *platform, provider string) {
	p.set("provider", on.name, provider)
	p.set("infrastructure", on.name, on.infrastructure)
}

// passed notes that a step passed.
func (p *page) passed(on *platform, step string, at time.Time) {
	p.set(step, on.name, at.UTC().Format(time.DateOnly))
}

// lacks notes why a step is skipped.
func (p *page) lacks(on *platform, step, why string) {
	p.set(step, on.name, "-")
	p.reasons[on.name+", "+step] = why
}

// write writes the page. Platforms that never ran have no column.
func (p *page) write() error {
	var columns []string
	var text strings.Builder
	for _, one := range platforms() {
		if p.cells["provider"][one.name] != "" {
			columns = append(columns, one.name)
		}
	}
	fmt.Fprintf(&text, "| | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
	rows := slices.Clone(heads)
	for _, one := range steps {
		rows = append(rows, one.name)
	}
	for _, row := range rows {
		text.WriteString("| " + row)
		for _, column := range columns {
			cell := p.cells[row][column]
			if cell == "" {
				cell = "not yet"
			}
			text.WriteString(" | " + cell)
		}
		text.WriteString(" |\n")
	}
	text.WriteString("\n")
	for _, column := range columns {
		for _, one := range steps {
			if why := p.reasons[column+", "+one.name]; why != "" && p.cells[one.name][column] == "-" {
				fmt.Fprintf(&text, "- %s, %s: %s\n", column, one.name, why)
			}
		}
	}
	return os.WriteFile(pagePath(), []byte(p.before+beginning+text.String()+ending+p.after), 0o600)
}
