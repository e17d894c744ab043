// Package verify tests rules that span the repository.
package verify

import "strings"

const root = "../.."

// firstCells returns the first column of a page's tables.
func firstCells(page string) string {
	var out []string
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" {
			out = append(out, cells[1])
		}
	}
	return strings.Join(out, "\n")
}
