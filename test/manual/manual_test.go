package manual

import "testing"

func TestRowsOf(t *testing.T) {
	rows := rowsOf("| flag | default | what |\n| `--one-two` | `3` | counts. |\nsome `--other`\n| `--three` |  | is empty. |\n")
	if len(rows) != 2 || rows["one-two"] != "| `--one-two` | `3` | counts. |" || rows["three"] == "" {
		t.Errorf("rows are %q", rows)
	}
}
