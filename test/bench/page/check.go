package page

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Check compares the ratios of sections that were measured anew with those of a page file, and returns a line for each that has grown by more than
// the tolerance, 0.2 for a fifth. Ratios are what is bold in columns about CPU: seconds depend on the machine, and so does the time on the clock.
func Check(file string, tolerance float64, measured ...Section) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the page of benchmarks: %w", err)
	}
	recorded := map[string]string{}
	for _, section := range split(string(content)) {
		recorded[section.Title] = section.Text
	}
	var worse []string
	for _, section := range measured {
		now := ratios(section.Text)
		before := ratios(recorded[section.Title])
		for _, name := range slices.Sorted(maps.Keys(before)) {
			ratio, known := now[name]
			switch {
			case !known:
				worse = append(worse, fmt.Sprintf("%s: %s is not measured any more; write the page anew with 'make bench'", section.Title, name))
			case ratio > before[name]*(1+tolerance)+rounding:
				worse = append(worse, fmt.Sprintf("%s: %s is %.2f, and was %.2f", section.Title, name, ratio, before[name]))
			}
		}
	}
	return worse, nil
}

// rounding is what two figures with two decimals may differ by although they are the same.
const rounding = 0.01

// bold is a number that a table shows in bold.
var bold = regexp.MustCompile(`^\*\*([0-9]+\.[0-9]+)\*\*$`)

// labels is how many cells at most name a row.
const labels = 2

// ratios returns the ratios in the tables of a section, by the names of row and column.
func ratios(text string) map[string]float64 {
	found := map[string]float64{}
	var heading []string
	for line := range strings.Lines(text) {
		cells := cellsOf(line)
		if cells == nil {
			heading = nil
			continue
		}
		if heading == nil {
			heading = cells
			continue
		}
		for i, cell := range cells {
			number := bold.FindStringSubmatch(cell)
			if number == nil || i >= len(heading) || !strings.Contains(heading[i], "CPU") {
				continue
			}
			if value, err := strconv.ParseFloat(number[1], 64); err == nil {
				found[nameOf(heading, cells)+", "+heading[i]] = value
			}
		}
	}
	return found
}

// nameOf joins what names a row: the first cell of the heading, by which tables differ, and the row's own.
func nameOf(heading, cells []string) string {
	var names []string
	for _, cell := range append([]string{heading[0]}, cells[:min(labels, len(cells))]...) {
		if bold.MatchString(cell) {
			break
		}
		if cell != "" {
			names = append(names, strings.Trim(cell, "*"))
		}
	}
	return strings.Join(names, ", ")
}

// cellsOf returns the cells of a table's row, nil for any other line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	cells := strings.Split(line[1:len(line)-1], "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells
}
