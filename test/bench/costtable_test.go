//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"
)

// costTable is CPU time by process, part and operation.
type costTable struct {
	// order is the rows, as they came.
	order [][2]string
	spent map[[2]string]map[operation]time.Duration
}

func newCostTable() *costTable {
	return &costTable{spent: map[[2]string]map[operation]time.Duration{}}
}

const (
	inAll     = "**in all**"
	otherwise = "other"
	// outside is what a process has spent that its profile does not have: before its main function and after.
	outside = "loading the program"
	// most is how many parts of a process have rows of their own, besides other.
	most = 4
)

// add adds what an operation has spent in a process, by its parts where there is a profile.
func (c *costTable) add(o operation, process string, all time.Duration, samples *pprof.Profile, parts []part) {
	c.note(o, process, inAll, all)
	if samples == nil {
		return
	}
	found, sampled := split(samples, parts)
	for _, one := range append(slices.Clone(parts), part{title: otherwise}) {
		c.note(o, process, one.title, found[one.title])
	}
	if all > sampled && (process == "engine" || process == pulumiCLI) {
		c.note(o, process, outside, all-sampled)
	}
}

func (c *costTable) note(o operation, process, title string, spent time.Duration) {
	row := [2]string{process, title}
	if c.spent[row] == nil {
		c.spent[row] = map[operation]time.Duration{}
		c.order = append(c.order, row)
	}
	c.spent[row][o] += spent
}

// total is what a row comes to.
func (c *costTable) total(row [2]string) (sum time.Duration) {
	for _, spent := range c.spent[row] {
		sum += spent
	}
	return sum
}

// fold moves all but the largest parts of each process to other.
func (c *costTable) fold() {
	left := map[string]int{}
	largest := func(a, b [2]string) int { return cmp.Compare(c.total(b), c.total(a)) }
	for _, row := range slices.SortedStableFunc(slices.Values(c.order), largest) {
		if row[1] == inAll || row[1] == otherwise {
			continue
		}
		if left[row[0]]++; left[row[0]] <= most {
			continue
		}
		for o, spent := range c.spent[row] {
			c.note(o, row[0], otherwise, spent)
		}
		c.order = slices.DeleteFunc(slices.Clone(c.order), func(one [2]string) bool { return one == row })
	}
}

// rows returns the table in Markdown, in milliseconds per Machine.
func (c *costTable) rows() []string {
	c.fold()
	var rows []string
	for _, row := range c.order {
		cells := []string{row[0], row[1]}
		for _, o := range operations {
			cells = append(cells, fmt.Sprintf("%.1f", float64(c.spent[row][o].Microseconds())/1000/float64(*each)))
		}
		rows = append(rows, "| "+strings.Join(cells, " | ")+" |")
	}
	return rows
}

// split adds the samples of a CPU profile up by part.
func split(samples *pprof.Profile, parts []part) (found map[string]time.Duration, all time.Duration) {
	found = map[string]time.Duration{}
	for _, sample := range samples.Sample {
		spent := time.Duration(sample.Value[len(sample.Value)-1])
		all += spent
		found[partOf(sample, parts)] += spent
	}
	return found, all
}

func partOf(sample *pprof.Sample, parts []part) string {
	var stack []string
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				stack = append(stack, line.Function.Name)
			}
		}
	}
	for _, one := range parts {
		for _, name := range one.has {
			if slices.ContainsFunc(stack, func(function string) bool { return strings.Contains(function, name) }) {
				return one.title
			}
		}
	}
	return otherwise
}
