package canary

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	// window is the length of a part of a canary that counts as a leak.
	window = 12
	// binarySize is the size above which files are programs.
	binarySize = 8 << 20
	// pin is a number in user data, which cannot be masked.
	pin = "4826105937"
)

// canaries are values that must not leak.
type canaries struct {
	mu sync.Mutex
	// shapes are the searched forms, by the value that they are part of.
	shapes map[string][]string
	// arguments were found in processes' arguments.
	arguments map[string]bool
}

func newCanaries() *canaries {
	return &canaries{shapes: map[string][]string{}, arguments: map[string]bool{}}
}

// fresh creates a canary of letters and digits, which no escaping changes.
func (c *canaries) fresh(what string) string {
	value := "cnry" + strings.ToLower(rand.Text())
	c.add(what, value)
	return value
}

// add adds a value to search for.
func (c *canaries) add(what, value string) {
	shapes := []string{hex.EncodeToString([]byte(value))}
	for i := 0; i+window <= len(value); i++ {
		shapes = append(shapes, value[i:i+window])
	}
	for before := range 3 { // at each offset in the encoded data
		begin := (before*8 + 5) / 6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
			shapes = append(shapes, encoded[begin:(before+len(value))*8/6])
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shapes[what] = append(c.shapes[what], shapes...)
}

// in returns the canaries in a text.
func (c *canaries) in(text string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for what, shapes := range c.shapes {
		if slices.ContainsFunc(shapes, func(shape string) bool { return strings.Contains(text, shape) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// unseen fails the test for each canary in a text.
func (c *canaries) unseen(t *testing.T, where, text string) {
	t.Helper()
	for _, what := range c.in(text) {
		t.Errorf("%s shows %s", where, what)
	}
}

// files returns the canaries in the files, and file names, below a folder.
func (c *canaries) files(folder string) []string {
	var found []string
	// files that vanish meanwhile cannot leak
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		text := path
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() < binarySize {
			if content, err := os.ReadFile(path); err == nil {
				text += "\n" + string(content)
			}
		}
		for _, what := range c.in(text) {
			found = append(found, what+" in "+path)
		}
		return nil
	})
	return found
}

// watch searches the arguments of all processes until the test ends.
func (c *canaries) watch(t *testing.T) {
	ctx := t.Context()
	go func() {
		for ctx.Err() == nil {
			c.lookAtArguments()
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

func (c *canaries) lookAtArguments() {
	running, err := observe.Processes()
	if err != nil {
		return
	}
	for _, process := range running {
		for _, what := range c.in(strings.Join(process.Arguments, "\n")) {
			c.mu.Lock()
			c.arguments[what+" in the arguments of "+process.Name] = true
			c.mu.Unlock()
		}
	}
}

func (c *canaries) seenInArguments() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for what := range c.arguments {
		found = append(found, what)
	}
	return found
}

// A search that finds nothing proves something only if it can find something.
func TestCanariesAreFound(t *testing.T) {
	c := newCanaries()
	value := c.fresh("a password")
	for name, text := range map[string]string{
		"plain": value, "a part": value[4 : 4+window], "JSON": strconv.Quote(`"` + value + `<`),
		"HTML":    html.EscapeString("<" + value + ">"),
		"a query": url.QueryEscape("& " + value), "base64": base64.StdEncoding.EncodeToString([]byte(value)),
		"hexadecimal":       hex.EncodeToString([]byte(value)),
		"base64 behind one": base64.StdEncoding.EncodeToString([]byte("x" + value + "\n")),
		"base64 behind two": base64.URLEncoding.EncodeToString([]byte("xy" + value)),
	} {
		if found := c.in("got <" + text + ">"); len(found) != 1 {
			t.Errorf("%s: %q is not found", name, text)
		}
	}
	if found := c.in(strings.ToUpper(value) + value[:window-1]); len(found) > 0 {
		t.Errorf("found in something else: %q", found)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "left"), []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := c.files(folder); len(found) != 1 {
		t.Errorf("in a file: %q", found)
	}
	process := exec.Command("sh", "-c", "sleep 20; :", value)
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); len(c.seenInArguments()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not found in the arguments of a process")
		}
		c.lookAtArguments()
	}
}

// userData returns each kind of user data by name, with unique canaries.
func (c *canaries) userData() map[string]string {
	fresh := func(kind, part string) string {
		return c.fresh(fmt.Sprintf("%s of the user data that is %s", part, kind))
	}
	var key strings.Builder
	for range 6 {
		key.WriteString(fresh("PEM", "a line") + strings.Repeat("A", 34) + "\n")
	}
	inner := base64.StdEncoding.EncodeToString([]byte("tenant: " + fresh("yaml", "what is encoded in a file") + "\n"))
	return map[string]string{
		"json": fmt.Sprintf(`{"ignition":{"version":"3.2.0"},"tenant":%q,"user":%q,"list":[%q,%q],"pin":%s}`,
			fresh("json", "a field"), fresh("json", "another field"), fresh("json", "an entry"),
			fresh("json", "another entry"), pin),
		"yaml": "#cloud-config\nwrite_files:\n- {path: /etc/a, encoding: b64, content: " + inner +
			"}\n- path: /etc/b\n  content: |\n    [api]\n    tenant = " +
			fresh("yaml", "a field of a file") + "\nhostname: " + fresh("yaml", "a field") + "\n",
		"pem":    "-----BEGIN PRIVATE KEY-----\n" + key.String() + "-----END PRIVATE KEY-----\n",
		"quotes": `it's "` + fresh("quotes", "a word") + `" <& \ ` + fresh("quotes", "the last word"),
		"shell": "#!/bin/sh\nexport A_TOKEN='" + fresh("shell", "a variable") + "'\ncurl -u a:" +
			fresh("shell", "an argument") + " https://x.example\n",
	}
}
