package manual

import (
	"flag"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRewrite(t *testing.T) {
	flags := flag.NewFlagSet("program", flag.ContinueOnError)
	flags.Int("one-two", 3, "Counts.")
	flags.String("missing", "", "Is not listed.")
	flags.String("zap-level", "", "In other words.")
	section := "| flag | default | what |\n| `--one-two` | `2` | Old text. |\nsome `--other`\n" +
		"| `--gone` |  | Is gone. |\n| `--zap-level` |  | By hand. |\n"
	want := "| flag | default | what |\n| `--one-two` | `3` | Counts. |\nsome `--other`\n| `--gone` |  | Is gone. |\n" +
		"| `--zap-level` |  | By hand. |\n"
	got, problems := rewrite(section, flags)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("section (-want +got):\n%s", diff)
	}
	wantProblems := []string{"there is no flag --gone; remove its row",
		"add the row\n| `--missing` |  | Is not listed. |"}
	if diff := cmp.Diff(wantProblems, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
