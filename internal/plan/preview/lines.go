package preview

import "strings"

// lineDiff returns the differing lines of two multi-line strings, with signs; nil for other values.
func lineDiff(before, after Value) []string {
	was, is := linesOf(before), linesOf(after)
	if was == nil || is == nil || len(was)*len(is) > maxCompared {
		return nil
	}
	common := commonLines(was, is)
	var lines []string
	for i, k := 0, 0; i < len(was) || k < len(is); {
		switch {
		case i < len(was) && k < len(is) && was[i] == is[k]:
			i, k = i+1, k+1
		case k == len(is) || i < len(was) && common[i+1][k] >= common[i][k+1]:
			lines, i = append(lines, "- "+was[i]), i+1
		default:
			lines, k = append(lines, "+ "+is[k]), k+1
		}
	}
	return lines
}

// linesOf returns the lines of a visible multi-line string; nil for any other value.
func linesOf(value Value) []string {
	text, isText := value.Value.(string)
	if !isText || value.Sensitive || !strings.Contains(text, "\n") {
		return nil
	}
	return strings.Split(text, "\n")
}

// commonLines returns a table: entry [i][k] is the length of the longest common subsequence of was[i:] and is[k:].
func commonLines(was, is []string) [][]int {
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for k := len(is) - 1; k >= 0; k-- {
			common[i][k] = max(common[i+1][k], common[i][k+1])
			if was[i] == is[k] {
				common[i][k] = common[i+1][k+1] + 1
			}
		}
	}
	return common
}

// maxCompared bounds the size of that table.
const maxCompared = 1 << 20
