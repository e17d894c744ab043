package preview

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"github.com/machine-iac/machine-iac-operator/internal/engine"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// marks are line prefixes that make a "diff" block show colours.
var marks = map[engine.Action]string{
	engine.ActionCreate: "+", engine.ActionUpdate: "!", engine.ActionDelete: "-", engine.ActionReplace: "-",
	engine.ActionForget: "-",
}

// markdown prints the preview for a pull request: the table, and each plan folded.
func markdown(p *Preview) []byte {
	var out bytes.Buffer
	summary := summaryLine(p.Summary)
	if p.Summary.Live != nil {
		summary = liveSummaryLine(p.Summary.Live)
	}
	fmt.Fprintf(&out, "### Preview\n\n%s\n", summary)
	rows := rows(p)
	if len(p.Sets) > 0 {
		fmt.Fprintf(&out, "\n%s\n%s\n", tableRow(rows[0]), strings.Repeat("|---", len(rows[0]))+"|")
		for _, row := range rows[1:] {
			fmt.Fprintln(&out, tableRow(row))
		}
	}
	for _, set := range p.Sets {
		liveMarkdown(set, &out)
		if set.Live == nil || set.Live.made() > 0 {
			setMarkdown(set, &out)
		}
	}
	return out.Bytes()
}

func setMarkdown(s *Set, out *bytes.Buffer) {
	var plan bytes.Buffer
	diffOf(&plan, s.Resources)
	if len(s.Resources) == 0 {
		fmt.Fprintln(&plan, "  No changes.")
	}
	fence := fenceFor(plan.String())
	fmt.Fprintf(out, "\n<details><summary>%s</summary>\n\n%sdiff\n%s%s\n", html.EscapeString(heading(s)), fence,
		plan.String(), fence)
	for n, note := range warned(notes(s), s.Warnings) {
		if n == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "- %s\n", plainText(print.Printable(note)))
	}
	fmt.Fprint(out, "\n</details>\n")
}

// diffOf writes resources as lines of a diff.
func diffOf(plan *bytes.Buffer, resources []Resource) {
	for _, resource := range resources {
		fmt.Fprintf(plan, "%s %s", marks[resource.Action], print.Printable(resource.Address))
		if resource.Unsure {
			fmt.Fprint(plan, "  # "+unsureText)
		}
		fmt.Fprintln(plan)
		diffLines(plan, resource.Attributes)
	}
}

func diffLines(plan *bytes.Buffer, attributes []Attribute) {
	lines := &painter{}
	lines.attributes("    ", attributes)
	for line := range strings.Lines(lines.out.String()) {
		sign, rest, _ := strings.Cut(strings.TrimPrefix(line, "    "), " ")
		if sign == signs[engine.ActionUpdate] {
			sign = marks[engine.ActionUpdate]
		}
		fmt.Fprintf(plan, "%s   %s", sign, rest)
	}
}

// fenceFor returns a fence longer than any in the text.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

func tableRow(cells []string) string {
	plain := make([]string, 0, len(cells))
	for _, cell := range cells {
		plain = append(plain, plainText(cell))
	}
	return "| " + strings.Join(plain, " | ") + " |"
}

// plainText escapes markup.
func plainText(raw string) string { return markup.Replace(raw) }

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&",
	"&amp;", "@", "&#64;", "#", `\#`,
)
