package repeat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// localsRoot is the object whose lists a program can repeat something for.
const localsRoot = "locals"

// reference is the content of ${...}: a name, and the steps from it.
type reference struct {
	root  string
	steps []step
}

// step is .NAME or [INDEX].
type step struct {
	name    string
	index   string
	indexed bool
}

// parseReference parses the text after "${". It returns the length including the closing brace. ok
// is false if the text is not a reference.
func parseReference(text string) (read reference, size int, ok bool) {
	end := strings.IndexAny(text, ".[}")
	if end <= 0 {
		return read, 0, false
	}
	read.root = text[:end]
	for i := end; i < len(text); {
		switch text[i] {
		case '}':
			return read, i + 1, true
		case '.':
			length := strings.IndexAny(text[i+1:], ".[}")
			if length <= 0 {
				return read, 0, false
			}
			read.steps = append(read.steps, step{name: text[i+1 : i+1+length]})
			i += 1 + length
		case '[':
			length := bracketed(text[i+1:])
			if length < 0 {
				return read, 0, false
			}
			read.steps = append(read.steps, step{index: text[i+1 : i+1+length], indexed: true})
			i += length + 2
		default:
			return read, 0, false
		}
	}
	return read, 0, false
}

// bracketed returns the length of the text before its closing bracket, or a negative number if
// there is none.
func bracketed(text string) int {
	depth, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case quoted:
		case text[i] == '[':
			depth++
		case text[i] == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// String returns the reference as in a program, without ${}.
func (r reference) String() string {
	var text strings.Builder
	text.WriteString(r.root)
	for _, one := range r.steps {
		if one.indexed {
			text.WriteString("[" + one.index + "]")
		} else {
			text.WriteString("." + one.name)
		}
	}
	return text.String()
}

// whole returns the reference that makes up a whole text.
func whole(text string) (reference, bool) {
	inner, starts := strings.CutPrefix(text, "${")
	if !starts {
		return reference{}, false
	}
	read, size, ok := parseReference(inner)
	return read, ok && size == len(inner)
}

var number = regexp.MustCompile(`^[0-9]{1,4}$`)

// numbers are the current indices of loops, by name.
type numbers map[string]int

// resolved returns a reference whose indices have numbers in place of loop names and locals.
func (x *expansion) resolved(r reference, at numbers) (reference, error) {
	made := reference{root: r.root, steps: make([]step, 0, len(r.steps))}
	for _, one := range r.steps {
		if one.indexed && !strings.HasPrefix(one.index, `"`) {
			n, err := x.position(one.index, at)
			if err != nil {
				return made, fmt.Errorf("${%s}: %w", r, err)
			}
			one.index = strconv.Itoa(n)
		}
		made.steps = append(made.steps, one)
	}
	return made, nil
}

// position returns the numeric value of an index.
func (x *expansion) position(index string, at numbers) (int, error) {
	if n, bound := at[index]; bound {
		return n, nil
	}
	if number.MatchString(index) {
		return strconv.Atoi(index)
	}
	inner, ok := whole("${" + index + "}")
	if !ok || inner.root != localsRoot {
		return 0, fmt.Errorf("[%s] is neither a number, nor the name of an enclosing each, nor in locals", index)
	}
	value, err := x.value(inner, at)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.Atoi(fmt.Sprint(value)); err == nil && n >= 0 {
		return n, nil
	}
	return 0, fmt.Errorf("%s is not a whole number, so it cannot be an index; compute one in locals.tf", inner)
}

// value returns a value of the locals.
func (x *expansion) value(r reference, at numbers) (any, error) {
	r, err := x.resolved(r, at)
	if err != nil {
		return nil, err
	}
	value := x.locals
	for i, one := range r.steps {
		var there bool
		switch from := value.(type) {
		case map[string]any:
			name := one.name
			if one.indexed {
				_ = json.Unmarshal([]byte(one.index), &name) // anything but a string names nothing
			}
			value, there = from[name]
		case []any:
			n, err := strconv.Atoi(one.index)
			if there = one.indexed && err == nil && n < len(from); there {
				value = from[n]
			}
		}
		if !there {
			return nil, fmt.Errorf("%s does not exist; compute it in locals.tf", reference{root: r.root, steps: r.steps[:i+1]})
		}
	}
	return value, nil
}
